// Package release tests the files of a release: that they are the same bytes wherever they are built, that their
// signature verifies with ssh-keygen, what archives and parts lists contain, and that the command line compiles for
// every system. It builds the program without the server, since the one with it takes many minutes. Run it with
// make test-release.
package release
