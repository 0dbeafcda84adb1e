// Package archtest checks the rules of the code base that the compiler does not check:
// which package may import which, that every package has a package comment, how long a
// file may be, that references to the specifications resolve. It contains only tests, and
// no other package imports it. Exceptions to a rule are listed here, each with its reason.
package archtest
