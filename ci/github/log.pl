#!/usr/bin/env perl
# What a server prints, and whether anybody answers at its URL: for run_gates.sh. Needs Perl alone.
#   log.pl keep FILE      standard input becomes FILE, without secrets; of much the first 64 MiB and the
#                         last 64 KiB, as in the logs of servers that a gate starts
#   log.pl show [FILE]    the last 40 lines of FILE, or of standard input, as words: no secret is in them,
#                         and nothing is a command for a runner or a terminal
#   log.pl is-free        whether nobody answers at the URL in standard input, or a gateway with nobody
#                         behind it
use strict;
use warnings;
use Errno;
use Socket;

# Of the environment; the rule is that of src/core/base/secrets.hpp and effects/targets/credentials.hpp.
my (%secrets);
sub add_secret {
    my ($s) = @_;
    return if length($s) < 4;
    my %short = ("\n" => '\n', "\t" => '\t', "\r" => '\r');
    (my $printed = $s) =~ s/([\x00-\x1f\x7f])/$short{$1} || sprintf('\x%02x', ord $1)/ge;
    (my $json = $s) =~ s/(["\\])/\\$1/g;
    $json =~ s/([\x00-\x1f\x7f])/$short{$1} || sprintf('\u%04x', ord $1)/ge;
    (my $slashed = $json) =~ s{/}{\\/}g;
    (my $twice = $json) =~ s/(["\\])/\\$1/g;
    (my $html = $s) =~ s/([&<>"'])/{'&' => '&amp;', '<' => '&lt;', '>' => '&gt;', '"' => '&quot;', "'" => '&#39;'}->{$1}/ge;
    (my $of_url = $s) =~ s/([^A-Za-z0-9_.~-])/sprintf '%%%02X', ord $1/ge;
    $secrets{$_} = 1 for $s, $printed, $json, $slashed, $twice, $html, $of_url;
    (my $decoded = $s) =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ge;
    add_secret($decoded) if $decoded ne $s;
    if ($s =~ m{\ABasic ([A-Za-z0-9+/]+)}i) {
        (my $digits = $1) =~ tr{A-Za-z0-9+/}{ -_};
        my $pair = unpack 'u', chr(32 + int(length($digits) * 3 / 4)) . $digits;
        add_secret($_) for $pair, $pair =~ /:(.*)/s ? $1 : ();
    }
    if ($s =~ /\n/) { $secrets{$_} = 1 for grep { length >= 8 } split /\n/, $s }
    add_secret($1) if $s =~ /\A[^ ]* (.*)\z/s;
}
my $named = qr/(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|AUTH|AUTHORIZATION|COOKIE|CREDENTIAL|CREDENTIALS)(?:[_-]|\z)/i;
for my $name (keys %ENV) {
    my $value = $ENV{$name};
    add_secret($value) if length $value >= 8 && $name =~ $named;
    if ($name =~ /\A(?:BASELINE_)?SERVER\z/) {  # --api-key x, TOKEN=x
        while ($value =~ /([\w-]+)(?:=|\s+|:\s*)(?=["']?([^\s"'&,;|<>]{8,}))/g) {
            my ($its, $word) = ($1, $2);
            add_secret($word) if $its =~ $named && $word !~ /\A\$/;
        }
    }
    add_secret($value) if $name =~ /\ALLMBENCH_(?:BASELINE_)?API_KEY\z/;
    next unless $name =~ /\ALLMBENCH_.*URL\z/;
    add_secret($1) if $value =~ m{\A[a-z]*://([^/?\@]*)\@};
    next unless $value =~ /\?(.*)/s;
    for (split /&/, $1) { add_secret($2) if /\A([^=]*)=(.{8,})/s && index($1, 'version') < 0 }
}
my @secrets = sort { length $b <=> length $a } keys %secrets;
my $any = join '|', map { quotemeta } @secrets;
sub masked { my ($s) = @_; $s =~ s/$any/***/g if @secrets; return $s }
# How many bytes at its end may begin a secret.
sub begun {
    my $most = 0;
    for my $secret (@secrets) {
        my $n = length($secret) - 1;
        $n = length($_[0]) if $n > length($_[0]);
        for (; $n > $most; --$n) { $most = $n if substr($_[0], -$n) eq substr($secret, 0, $n) }
    }
    return $most;
}

sub keep {
    my ($file) = @_;
    my ($room, $kept, $left_out, $held, $last, $over) = (64 << 20, 1 << 16, 0, '', '', 0);
    open my $out, '>:raw', $file or die "log.pl: $file cannot be written: $!\n";
    # Whoever tells us to end has told the server, too: it may say a last word.
    $SIG{TERM} = sub { alarm 2 };
    $SIG{ALRM} = sub { $over = 1 };
    $SIG{INT} = $SIG{HUP} = 'IGNORE';
    my $put = sub {
        $last .= $_[0];
        substr($last, 0, length($last) - $kept) = '' if length $last > 2 * $kept;
        my $fits = length $_[0] < $room ? length $_[0] : $room;
        $room -= $fits;
        $left_out += length($_[0]) - $fits;
        syswrite $out, $_[0], $fits;  # a full disk must not hold the server
    };
    for (my $taken = 0; !$over;) {
        my $n = sysread STDIN, my $some, 1 << 16;
        next if !defined $n && $!{EINTR};
        last if !$n;
        $held = masked($held . $some);
        my $whole = length($held) - begun($held);
        $put->(substr $held, 0, $whole);
        $held = substr $held, $whole;
        $taken = $n == 1 << 16 ? $taken + 1 : 0;
        select undef, undef, undef, 0.005 if $taken && $taken % 4 == 0;  # a flood takes no core
    }
    $put->($held);
    my $at_end = $left_out < length $last ? $left_out : length $last;
    syswrite $out, sprintf "\n[llmbench: %d bytes are left out here]\n", $left_out - $at_end if $left_out > $at_end;
    syswrite $out, substr $last, -$at_end if $at_end;
}

sub show {
    my ($in, $from) = (\*STDIN, 0);
    if (defined $_[0]) {
        open $in, '<:raw', $_[0] or return;
        $from = (-s $in) - 65536;
        seek $in, $from, 0 if $from > 0;
    }
    local $/;
    my @lines = split /\r\n|\r|\n/, masked(scalar(<$in>) // '');
    shift @lines if $from > 0;
    @lines = @lines[-40 .. -1] if @lines > 40;
    print "    (nothing)\n" if !@lines;
    for (@lines) {
        # Also C1, and what ends a line or turns its direction: U+2028 to 202E, U+2066 to 2069.
        s/[\x00-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xa8-\xae]|\xe2\x81[\xa6-\xa9]/?/g;
        s/##([A-Za-z]*\[)/#\\x23$1/g;
        print "    | $_\n";
    }
}

# The status of an answer, 0 where nobody listens, -1 for silence, and for what speaks no HTTP.
sub status_at {
    my ($url) = @_;
    my ($end, @at);
    if ($url =~ m{\Aunix:(?://)?(/[^?]*)}) {
        my $path = $1;
        @at = ([AF_UNIX, pack_sockaddr_un($path)]);
    } elsif ($url =~ m{\A(https?)://(?:[^/?\@]*\@)?(?:\[([0-9a-f:.]+)\]|([^:/?]+))(?::(\d+))?}i) {
        my ($host, $port) = (defined $2 ? $2 : $3, $4 || (lc $1 eq 'https' ? 443 : 80));
        my ($problem, @found) = Socket::getaddrinfo($host, $port, {socktype => SOCK_STREAM});
        @at = map { [$_->{family}, $_->{addr}] } @found;
    } else {
        print "'", masked($url), "' is no URL of a server\n";
        exit 2;
    }
    for (@at) {
        socket my $to, $_->[0], SOCK_STREAM, 0 or next;
        my $silent = sub { die "silence\n" };
        my $status = eval {
            local $SIG{ALRM} = $silent;
            alarm 2;
            connect $to, $_->[1] or return 0;
            return -1 if $url =~ /\Ahttps:/i;
            syswrite $to, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
            my $answer = '';
            while ($answer !~ /\n/ && sysread $to, my $some, 4096) { $answer .= $some }
            return $answer =~ m{\AHTTP/[0-9.]+ (\d+)} ? $1 : -1;
        };
        alarm 0;
        $status = -1 unless defined $status;
        return $status if $status;
    }
    return 0;
}

my ($verb, @rest) = @ARGV;
if ($verb eq 'keep') { keep(@rest) }
elsif ($verb eq 'show') { show(@rest) }
elsif ($verb eq 'is-free') { my $status = status_at(scalar(<STDIN>) // ''); exit !($status == 0 || $status == 502 || $status == 504) }
else { die "log.pl: keep, show or is-free\n" }
