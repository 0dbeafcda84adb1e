"""The official Kubernetes client with the kubeconfig of `freshet kubeconfig`: list,
create, watch, patch and delete an object, then produce and consume a message at the
URL in a cluster's status."""

import urllib.request

from kubernetes import client, config, watch

GROUP, VERSION, SPACE, KIND = "cloud.vendor.io", "v1alpha1", "default", "serviceaccounts"

config.load_kube_config()  # $KUBECONFIG
token = client.ApiClient().configuration.api_key["authorization"]  # "Bearer …"
api = client.CustomObjectsApi()

before = api.list_namespaced_custom_object(GROUP, VERSION, SPACE, KIND)
name = "python-client"
created = api.create_namespaced_custom_object(
    GROUP, VERSION, SPACE, KIND,
    {"apiVersion": f"{GROUP}/{VERSION}", "kind": "ServiceAccount", "metadata": {"name": name}},
)
assert created["metadata"]["uid"], f"got {created}, want an object with a uid"
after = api.list_namespaced_custom_object(GROUP, VERSION, SPACE, KIND)
assert len(after["items"]) == len(before["items"]) + 1, "want one more object in the list"
api.patch_namespaced_custom_object(GROUP, VERSION, SPACE, KIND, name, {"metadata": {"labels": {"by": "python"}}})
got = api.get_namespaced_custom_object(GROUP, VERSION, SPACE, KIND, name)
assert got["metadata"]["labels"] == {"by": "python"}, f"got {got}, want the label"
try:
    api.get_namespaced_custom_object(GROUP, VERSION, SPACE, KIND, "no-such-account")
    raise AssertionError("want 404 for an object that does not exist")
except client.exceptions.ApiException as e:
    assert e.status == 404, f"got {e.status}, want 404"

deleted = False
stream = watch.Watch().stream(
    api.list_namespaced_custom_object, GROUP, VERSION, SPACE, KIND,
    resource_version=before["metadata"]["resourceVersion"], field_selector=f"metadata.name={name}", timeout_seconds=30,
)
for event in stream:
    if event["type"] == "ADDED":
        api.delete_namespaced_custom_object(GROUP, VERSION, SPACE, KIND, name)
    if event["type"] == "DELETED":
        deleted = True
        break
assert deleted, "the watch ended before the deletion"

cluster = api.get_namespaced_custom_object(GROUP, VERSION, SPACE, "messagingclusters", "default")
at = {e["type"]: e["pathURL"] for e in cluster["status"]["endpoints"]}


def call(method, url, body=None):
    request = urllib.request.Request(url, body, method=method)
    request.add_header("Authorization", token)
    request.add_header("Content-Type", "application/octet-stream" if body else "application/json")
    with urllib.request.urlopen(request, timeout=30) as response:
        return response.read()


call("PUT", at["admin"] + "/persistent/public/default/python/subscription/me")
call("POST", at["messages"] + "/public/default/python/message", b"hello")
got = call("POST", at["messages"] + "/public/default/python/me/message")
assert got == b"hello", f"got {got!r}, want the message"
print("kubernetes works")
