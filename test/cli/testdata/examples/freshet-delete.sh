freshet sa create deleted
freshet apikey create old-key --account deleted --out key
printf '{apiVersion: cloud.vendor.io/v1alpha1, kind: MessagingInstance, metadata: {name: trial}}' | freshet apply -f - --wait
printf '{apiVersion: cloud.vendor.io/v1alpha1, kind: ServiceAccount, metadata: {name: not-there}}' > account.yaml
