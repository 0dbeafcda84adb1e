// Package operations tests the output of `freshet generate` with the programs that use it:
// the parsers of Prometheus and of compose files, promtool, Prometheus with a real server,
// systemd, and the types of Grafana's dashboards. It is a separate module, so that the
// product does not depend on them.
//
// It runs the binary that FRESHET_BIN names, or builds one. Tests whose program is not
// installed are skipped as NOT TESTED; make test installs what it can.
package operations
