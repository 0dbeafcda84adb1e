// Package telemetry has the logger, the bridges that redirect the logs of embedded
// libraries to it, the metrics registry with RED metrics for every HTTP surface, and the
// memory limit of the container.
//
// It does not handle requests: web calls it through its Observer interface, and server
// serves Handler on the ops address. Other packages register their own collectors with
// Metrics.Registry.
//
// Locks:
//
//	Metrics.seriesMu  serializes writers of Metrics.series; readers take no lock
//	logFile.mu        logFile.file; held while a line is written and while the file is replaced
//
// No function takes both.
package telemetry
