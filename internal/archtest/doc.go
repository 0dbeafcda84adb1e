// Package archtest holds the house rules that a compiler does not: which
// package may import which, that every package says what it owns, that files
// stay readable. It has tests only and belongs to nobody's build; a rule that
// has to bend is bent here, in the open, with a reason.
package archtest
