freshet kubeconfig --merge
kubectl create namespace acme || true
kubectl -n acme apply -f - <<END
{apiVersion: cloud.vendor.io/v1alpha1, kind: ServiceAccount, metadata: {name: ci}}
END
