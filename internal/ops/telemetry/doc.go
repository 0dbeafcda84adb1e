// Package telemetry makes the process observable: the logger and the bridges
// that bring the libraries' logs into it, the metrics registry with one set of
// RED metrics for every HTTP surface, and the memory limit taken from the
// container.
//
// It decides nothing about requests: web calls it through its Observer
// interface, server mounts Handler on the ops listener. Domains that count
// things of their own register collectors with Metrics.Registry.
package telemetry
