// Package dex signs users in to a running Freshet with Dex, a third-party OpenID provider
// that runs in this process. It is a separate module, so that the product does not depend
// on Dex.
package dex
