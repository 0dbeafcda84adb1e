// Command kubectl is the stock Kubernetes client, built from its own module at the
// version of the Kubernetes libraries that the server uses. The end-to-end tests run it
// against the real binary. It is never shipped.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
		os.Exit(1)
	}
}
