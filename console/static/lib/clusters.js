// Where a cluster's services are for this page: behind the path prefix on our own
// origin, so no name needs to resolve, and with a token for its instance.
import { get, resource } from './api.js'

/** @returns {{org: string, name: string, audience: string, root: string, messages: string, admin: string, topics: string, registry: string}} */
export function dataPlane(cluster) {
  const org = cluster.metadata.namespace, name = cluster.metadata.name
  const root = `/clusters/${encodeURIComponent(org)}/${encodeURIComponent(name)}`
  const path = (type, otherwise) => {
    const found = cluster.status?.endpoints?.find(e => e.type === type)?.pathURL
    return found ? new URL(found).pathname : root + otherwise
  }
  return {
    org, name, root, audience: `urn:vendor:messaging:${org}:${cluster.spec.instanceName}`,
    messages: path('messages', '/admin/rest/topics/v1'), admin: path('admin', '/admin/v2'), topics: path('topics', '/rest-stream/admin/v1'), registry: path('registry', '/stream'),
  }
}

/** The clusters of an organization that can be called. */
export const clustersOf = async (org, o) => (await get(resource(org, 'messagingclusters'), { background: true, ...o })).items
