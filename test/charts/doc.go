// Package charts tests the Helm chart in deploy/helm: with the Helm library, with the code of
// kube-apiserver, and by running what it starts. It is a module of its own, so that the product does not depend on Helm.
//
//   - helm_test.go lints and renders the chart with every file in testdata, and compares the objects with
//     those of `freshet generate kubernetes`. It decodes objects of other operators with their types.
//   - the module in kubernetes validates the objects with the code of kube-apiserver.
//   - members_test.go runs the command lines, variables, files and users of the pods as processes on
//     loopback (pod_test.go), and updates them one by one.
//
// make test-charts builds what the tests need and runs them.
package charts
