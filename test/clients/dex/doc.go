// Package dex signs people in to a running Freshet with Dex, an OpenID provider that
// others wrote, run in this process. It is a module of its own, so that nothing of
// Dex reaches the product.
package dex
