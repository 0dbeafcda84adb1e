// Package operations has what `freshet generate` writes read by the programs that it
// is for: the parsers of Prometheus and of compose files, promtool, Prometheus itself
// beside a real server, systemd, and the types of Grafana's dashboards. It is a module
// of its own, so that nothing of these reaches the product.
//
// It runs the binary that FRESHET_BIN names, or builds one. What is not installed is
// skipped as NOT TESTED; make test installs what it can.
package operations
