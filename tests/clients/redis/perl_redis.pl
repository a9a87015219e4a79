# The scenario of tests/clients/test_redis_clients.py with the module Redis of Perl.
use strict;
use warnings;
use Redis;

$| = 1;

sub connect_as {
    my ($secret) = @_;
    return Redis->new(
        server => "$ENV{HOST}:$ENV{PORT}",
        username => 'app',
        password => $secret,
        read_timeout => 60,
    );
}

sub expect {
    my ($condition, $what) = @_;
    die "failed: $what\n" unless $condition;
}

sub ok { print "ok $_[0]\n" }

# Any method name is a command. An error is an exception.
sub error_of {
    my ($redis, $verb, @words) = @_;
    eval { $redis->$verb(@words); 1 } and die "no error: $verb @words\n";
    return $@;
}

my ($a, $b) = map { connect_as($ENV{SECRET}) } 1, 2;

my ($outcome, $token, $validity_ms, $elapsed_ms, $fence) = $a->lock('x', '30s');
expect($outcome eq 'OK' && length $token == 40 && !defined $fence, 'LOCK');
expect($validity_ms + $elapsed_ms > 0, 'the fields of LOCK');
ok('lock');

my ($held, $hint_ms) = $b->lock('x', '30s');
expect($held eq 'HELD' && $hint_ms > 0, 'HELD');
ok('exclusion');

expect(($a->extend('x', $token, '40s'))[1] eq $token, 'EXTEND');
ok('extend');

expect($a->unlock('x', $token) eq 'OK', 'UNLOCK');
expect($a->unlock('x', $token) eq 'GONE', 'UNLOCK again');
ok('unlock');

expect(($a->lock('x', '2s'))[0] eq 'OK', 'LOCK');
expect(($b->lock('x', '30s', 'WAIT', '30s'))[0] eq 'OK', 'WAIT');
ok('wait');

my @first = $a->lock('f', '30s', 'FENCE');
expect($a->unlock('f', $first[1]) eq 'OK', 'UNLOCK');
expect(($a->lock('f', '30s', 'FENCE'))[4] > $first[4], 'FENCE');
ok('fence');

expect(error_of($a, 'lock', 'x', '1ms') =~ /ttl-range TTL 1ms must be between/, 'the error');
ok('error');

eval { connect_as('wrong') };
expect($@ =~ /WRONGPASS/, $@);
ok('secret');

expect(error_of($a, 'lock', 'h', '3s', 'HOLD') =~ /send HELLO 3 first/, 'HOLD');
ok('hold');

my %tokens;
for my $i (1 .. 64) {
    $a->lock("many:$i", '30s', sub { my ($reply) = @_; $tokens{ $reply->[1] } = 1 });
}
$a->wait_all_responses;
expect(keys %tokens == 64, 'many');
ok('many');

my @nodes = $a->nodes;
expect(@nodes == 3, 'NODES');
for my $node (@nodes) {
    my %node = @$node;
    expect($node{vote} eq 'yes', 'vote');
}
ok('listing');

expect(error_of($a, 'break', 'x') =~ /NOPERM/, 'BREAK');
ok('denied');

my $kept = ($a->lock('kept', '50s'))[1];
print "restart\n";
expect(<STDIN> eq "restarted\n", 'restarted');
# Without the option `reconnect`, the application connects again.
error_of($a, 'status', 'kept');
$a = connect_as($ENV{SECRET});
expect(($a->status('kept'))[0] eq 'HELD', 'STATUS');
expect($a->unlock('kept', $kept) eq 'OK', 'UNLOCK');
ok('reconnect');
