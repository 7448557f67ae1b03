#!/usr/bin/env perl
# Stands in for OpenSSL's util/mkdef.pl, which the openssl-src crate leaves out: writes the linker
# version script of a shared library from its ordinals file. For Linux only.
#
#   mkdef.pl [--version V] [--type lib] --ordinals util/libcrypto.num --name libcrypto --OS linux
#
# A line of the ordinals is: symbol, number, release (3_0_0), EXIST|NOEXIST:platforms:kind:features.
# Symbols whose features are off are named all the same: the linker passes over what is not defined.
use strict;
use warnings;
use Getopt::Long;

my %option;
GetOptions(\%option, 'version=s', 'type=s', 'ordinals=s', 'name=s', 'OS=s')
    or die "mkdef.pl: unknown option\n";
die "mkdef.pl: writes for linux only, not for $option{OS}\n" unless $option{OS} =~ /^linux/;

my %symbols;    # release => [symbols]
open my $ordinals, '<', $option{ordinals} or die "mkdef.pl: $option{ordinals}: $!\n";
while (<$ordinals>) {
    s/\s*#.*//;
    next unless /\S/;
    my ($symbol, undef, $release, $info) = split;
    next unless $info =~ /^EXIST:/;
    push @{ $symbols{$release} }, $symbol;
}
close $ordinals;

sub number { return join '', map { sprintf '%04d', $_ } $_[0] =~ /(\d+)/g }

my $previous = '';
for my $release (sort { number($a) <=> number($b) } keys %symbols) {
    (my $node = "OPENSSL_$release") =~ tr/_/./;
    $node =~ s/^OPENSSL\./OPENSSL_/;
    print "$node {\n    global:\n";
    print "        $_;\n" for sort @{ $symbols{$release} };
    print "    local: *;\n" unless $previous;
    print "}$previous;\n\n";
    $previous = " $node";
}
