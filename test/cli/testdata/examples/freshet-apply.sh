cat > account.yaml <<END
apiVersion: cloud.vendor.io/v1alpha1
kind: ServiceAccount
metadata: {name: applied}
END
mkdir manifests
cp account.yaml manifests
