printf '{apiVersion: cloud.vendor.io/v1alpha1, kind: ServiceAccount, metadata: {name: ci}}' | freshet apply -n acme -f - --wait
