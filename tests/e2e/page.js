// Loads the status page in Chromium: node page.js URL WIDTH dark|light [PICTURE.png]
//
// Prints as JSON the state of the page after loading, after the next refresh, and after the network
// is cut off: title, text, time of the data, health, whether the page is marked as stale, whether it
// is wider than its window, and how many scripts, images and frames are in its content. Also prints
// the requests to other hosts, and all errors of the browser (scripts, Content-Security-Policy,
// failed requests) until the network is cut off. Controls Chromium over its debugging pipe.
'use strict';
const { spawn } = require('child_process');
const fs = require('fs');
const os = require('os');

const [url, width, scheme, picture] = process.argv.slice(2);
const profile = fs.mkdtempSync(`${os.tmpdir()}/page-`);
const chromium = spawn('chromium', [
    '--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--hide-scrollbars',
    '--remote-debugging-pipe', `--user-data-dir=${profile}`, 'about:blank',
], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'], detached: true });

let last = 0;
let input = '';
const waiting = new Map();
const complaints = [];
const fetched = [];

function send(method, params = {}, sessionId) {
    const id = ++last;
    chromium.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + '\0');
    return new Promise((done, failed) => waiting.set(id, { done, failed, method }));
}

function take(message) {
    if (message.id !== undefined) {
        const { done, failed, method } = waiting.get(message.id);
        waiting.delete(message.id);
        if (message.error) failed(new Error(`${method}: ${message.error.message}`));
        else done(message.result);
        return;
    }
    const { method, params } = message;
    if (method === 'Runtime.exceptionThrown') complaints.push(params.exceptionDetails.text);
    if (method === 'Log.entryAdded' && params.entry.level === 'error') complaints.push(params.entry.text);
    if (method === 'Network.requestWillBeSent') fetched.push(params.request.url);
}

chromium.stdio[4].on('data', (bytes) => {
    input += bytes;
    for (let end; (end = input.indexOf('\0')) >= 0; input = input.slice(end + 1))
        take(JSON.parse(input.slice(0, end)));
});

function end(code) {
    try { process.kill(-chromium.pid, 'SIGKILL'); } catch (error) { /* already ended */ }
    setTimeout(() => {
        fs.rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
        process.exit(code);
    }, 200);
}
setTimeout(() => { console.error('page.js: the browser did not finish within 30 s'); end(1); }, 30000);

async function look(session) {
    const expression = `({
        title: document.title, text: document.body.innerText,
        time: document.querySelector('time').textContent,
        stale: document.body.classList.contains('stale'),
        health: document.querySelector('main').className,
        wide: document.documentElement.scrollWidth > innerWidth,
        made: document.querySelectorAll('main script, main img, main iframe').length,
    })`;
    const { result } = await send('Runtime.evaluate', { expression, returnByValue: true }, session);
    return result.value;
}

async function wait_for(session, expression) {
    for (;;) {
        const { result } = await send('Runtime.evaluate', { expression, returnByValue: true }, session);
        if (result.value) return;
        await new Promise((done) => setTimeout(done, 50));
    }
}

async function shoot(session, file) {
    const { data } = await send('Page.captureScreenshot', { captureBeyondViewport: true }, session);
    fs.writeFileSync(file, Buffer.from(data, 'base64'));
}

async function main() {
    const { targetInfos } = await send('Target.getTargets');
    const { targetId } = targetInfos.find((target) => target.type === 'page');
    const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true });
    for (const domain of ['Page', 'Runtime', 'Log', 'Network'])
        await send(`${domain}.enable`, {}, sessionId);
    await send('Emulation.setEmulatedMedia',
        { features: [{ name: 'prefers-color-scheme', value: scheme }] }, sessionId);
    await send('Emulation.setDeviceMetricsOverride',
        { width: Number(width), height: 900, deviceScaleFactor: 1, mobile: width < 600 }, sessionId);
    await send('Page.navigate', { url }, sessionId);
    await wait_for(sessionId, `document.readyState === 'complete' && !!document.querySelector('time')`);
    const first = await look(sessionId);
    await wait_for(sessionId, `document.querySelector('time').textContent !== '${first.time}'`);
    const second = await look(sessionId);
    if (picture)
        await shoot(sessionId, picture);
    const heard = complaints.slice();
    await send('Network.emulateNetworkConditions',
        { offline: true, latency: 0, downloadThroughput: 0, uploadThroughput: 0 }, sessionId);
    await wait_for(sessionId, `document.body.classList.contains('stale')`);
    const cut_off = await look(sessionId);
    if (picture)
        await shoot(sessionId, picture.replace('.png', '-stale.png'));
    const elsewhere = fetched.filter((one) => !one.startsWith(url) && !one.startsWith('data:'));
    console.log(JSON.stringify({ first, second, cut_off, elsewhere, complaints: heard }, null, 1));
    end(0);
}

main().catch((error) => { console.error(`page.js: ${error.message}`); end(1); });
