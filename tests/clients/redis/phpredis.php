<?php
// The scenario of tests/clients/test_redis_clients.py with phpredis.

function expect($condition, $what)
{
    if (!$condition) {
        echo "failed: $what\n";
        exit(1);
    }
}

function ok($step)
{
    echo "ok $step\n";
}

function connect($secret)
{
    $redis = new Redis();
    $redis->connect(getenv('HOST'), (int)getenv('PORT'));
    $redis->setOption(Redis::OPT_READ_TIMEOUT, 60);  // longer than any WAIT
    $redis->setOption(Redis::OPT_MAX_RETRIES, 0);
    $redis->auth(['app', $secret]);
    return $redis;
}

// rawCommand() returns false for an error and keeps its text. For a status such as OK it returns
// true, unless OPT_REPLY_LITERAL is set.
function ask($redis, ...$words)
{
    $redis->clearLastError();
    $reply = $redis->rawCommand(...$words);
    if ($redis->getLastError() !== null)
        throw new RedisException($redis->getLastError());
    return $reply;
}

function error_of($redis, ...$words)
{
    try {
        ask($redis, ...$words);
    } catch (RedisException $error) {
        return $error->getMessage();
    }
    expect(false, implode(' ', $words));
}

$a = connect(getenv('SECRET'));
$b = connect(getenv('SECRET'));
foreach ([$a, $b] as $redis)
    $redis->setOption(Redis::OPT_REPLY_LITERAL, true);

[$outcome, $token, $validity_ms, $elapsed_ms, $fence] = ask($a, 'LOCK', 'x', '30s');
expect($outcome === 'OK' && strlen($token) === 40, 'LOCK');
expect(is_int($validity_ms) && is_int($elapsed_ms) && !$fence, 'the fields of LOCK');
ok('lock');

[$outcome, $hint_ms] = ask($b, 'LOCK', 'x', '30s');
expect($outcome === 'HELD' && $hint_ms > 0, 'HELD');
ok('exclusion');

expect(ask($a, 'EXTEND', 'x', $token, '40s')[1] === $token, 'EXTEND');
ok('extend');

expect(ask($a, 'UNLOCK', 'x', $token) === 'OK', 'UNLOCK');
expect(ask($a, 'UNLOCK', 'x', $token) === 'GONE', 'UNLOCK again');
ok('unlock');

expect(ask($a, 'LOCK', 'x', '2s')[0] === 'OK', 'LOCK');
expect(ask($b, 'LOCK', 'x', '30s', 'WAIT', '30s')[0] === 'OK', 'WAIT');
ok('wait');

$first = ask($a, 'LOCK', 'f', '30s', 'FENCE');
expect(ask($a, 'UNLOCK', 'f', $first[1]) === 'OK', 'UNLOCK');
expect(ask($a, 'LOCK', 'f', '30s', 'FENCE')[4] > $first[4], 'FENCE');
ok('fence');

expect(str_contains(error_of($a, 'LOCK', 'x', '1ms'), 'ttl-range TTL 1ms must be between'), 'the error');
ok('error');

try {
    $stranger = connect('wrong');
    $error = error_of($stranger, 'PING');
} catch (RedisException $exception) {
    $error = $exception->getMessage();
}
expect(str_contains($error, 'WRONGPASS'), $error);
ok('secret');

expect(str_contains(error_of($a, 'LOCK', 'h', '3s', 'HOLD'), 'send HELLO 3 first'), 'HOLD');
ok('hold');

$pipeline = $a->multi(Redis::PIPELINE);
for ($i = 0; $i < 64; $i++)
    $pipeline->rawCommand('LOCK', "many:$i", '30s');
$grants = $pipeline->exec();
expect(count(array_unique(array_column($grants, 1))) === 64, 'many');
ok('many');

$nodes = ask($a, 'NODES');
expect(count($nodes) === 3, 'NODES');
foreach ($nodes as $node)
    expect($node[array_search('vote', $node, true) + 1] === 'yes', 'vote');
ok('listing');

expect(str_starts_with(error_of($a, 'BREAK', 'x'), 'NOPERM'), 'BREAK');
ok('denied');

$kept = ask($a, 'LOCK', 'kept', '50s')[1];
echo "restart\n";
expect(fgets(STDIN) === "restarted\n", 'restarted');
// Without retries, the application connects again.
error_of($a, 'STATUS', 'kept');
$a = connect(getenv('SECRET'));
$a->setOption(Redis::OPT_REPLY_LITERAL, true);
expect(ask($a, 'STATUS', 'kept')[0] === 'HELD', 'STATUS');
expect(ask($a, 'UNLOCK', 'kept', $kept) === 'OK', 'UNLOCK');
ok('reconnect');
