// The official Kubernetes client with the kubeconfig of `freshet kubeconfig`: list,
// create, watch, patch and delete an object, then produce and consume a message at the
// URL in a cluster's status.
import assert from 'node:assert/strict';
import { CustomObjectsApi, KubeConfig, Watch } from '@kubernetes/client-node';

const config = new KubeConfig();
config.loadFromDefault(); // $KUBECONFIG
const api = config.makeApiClient(CustomObjectsApi);
const accounts = { group: 'cloud.vendor.io', version: 'v1alpha1', namespace: 'default', plural: 'serviceaccounts' };
const name = 'javascript-client';

const before = await api.listNamespacedCustomObject(accounts);
const created = await api.createNamespacedCustomObject({
  ...accounts,
  body: { apiVersion: 'cloud.vendor.io/v1alpha1', kind: 'ServiceAccount', metadata: { name } },
});
assert.ok(created.metadata.uid);
const after = await api.listNamespacedCustomObject(accounts);
assert.equal(after.items.length, before.items.length + 1);
const labels = { by: 'javascript' };
const patch = [{ op: 'add', path: '/metadata/labels', value: labels }];
await api.patchNamespacedCustomObject({ ...accounts, name, body: patch });
const got = await api.getNamespacedCustomObject({ ...accounts, name });
assert.deepEqual(got.metadata.labels, labels);
await assert.rejects(api.getNamespacedCustomObject({ ...accounts, name: 'no-such-account' }), (e) => e.code === 404);

await new Promise((seen, failed) => {
  let controller;
  new Watch(config).watch(
    '/apis/cloud.vendor.io/v1alpha1/namespaces/default/serviceaccounts',
    { resourceVersion: before.metadata.resourceVersion, fieldSelector: `metadata.name=${name}`, timeoutSeconds: 30 },
    (type) => {
      if (type === 'ADDED') api.deleteNamespacedCustomObject({ ...accounts, name }).catch(failed);
      if (type === 'DELETED') { seen(); controller?.abort(); }
    },
    (error) => failed(error ?? new Error('the watch ended before the deletion')),
  ).then((c) => { controller = c; }, failed);
});

const cluster = await api.getNamespacedCustomObject({ ...accounts, plural: 'messagingclusters', name: 'default' });
const at = Object.fromEntries(cluster.status.endpoints.map((e) => [e.type, e.pathURL]));
const options = {};
await config.applyToHTTPSOptions(options); // gets a token as the kubeconfig describes
const call = async (method, url, body) => {
  const response = await fetch(url, {
    method, body, headers: {
      Authorization: options.headers.Authorization,
      'Content-Type': body ? 'application/octet-stream' : 'application/json',
    },
  });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${url}: got ${response.status} ${text}`);
  return text;
};
await call('PUT', `${at.admin}/persistent/public/default/javascript/subscription/me`);
await call('POST', `${at.messages}/public/default/javascript/message`, 'hello');
assert.equal(await call('POST', `${at.messages}/public/default/javascript/me/message`), 'hello');
console.log('@kubernetes/client-node works');
