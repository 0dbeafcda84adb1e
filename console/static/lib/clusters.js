// The APIs of a cluster, under a path on the console's own origin, so that no other host
// name needs to resolve. They need a token for the cluster's instance.
import { call, get, resource } from './api.js'

const join = (...names) => names.map(encodeURIComponent).join('/')

/**
 * The paths of a cluster's APIs and the audience of its tokens.
 * @returns {{org: string, name: string, audience: string, root: string, messages: string, admin: string,
 *   topics: string, registry: string}}
 */
export function dataPlane(cluster) {
  const { namespace: org, name } = cluster.metadata
  const root = `/clusters/${join(org, name)}`
  const path = (type, fallback) => {
    const url = cluster.status?.endpoints?.find(e => e.type === type)?.pathURL
    return url ? new URL(url).pathname : root + fallback
  }
  return {
    org,
    name,
    root,
    audience: `urn:vendor:messaging:${org}:${cluster.spec.instanceName}`,
    messages: path('messages', '/admin/rest/topics/v1'),
    admin: path('admin', '/admin/v2'),
    topics: path('topics', '/rest-stream/admin/v1'),
    registry: path('registry', '/stream'),
  }
}

/** dataPlane with functions that send requests to the cluster until the signal aborts. */
export function clusterClient(cluster, signal) {
  const client = dataPlane(cluster)
  return Object.assign(client, {
    call: (method, url, o) => call(method, url, { audience: client.audience, signal, ...o }),
    get: (url, o) => client.call('GET', url, o).then(r => r.data),
    /** The path of a topic in the admin API. */
    topic: (tenant, namespace, topic, rest = '') =>
      `${client.admin}/persistent/${join(tenant, namespace, topic)}${rest}`,
    /** The path of a topic in the messages API. */
    messagesOf: (tenant, namespace, topic, rest = '') =>
      `${client.messages}/${join(tenant, namespace, topic)}${rest}`,
  })
}

/** The path of a topic's schemas in the admin API. */
export const topicSchemas = (client, { tenant, namespace, topic }) =>
  `${client.admin}/schemas/${join(tenant, namespace, topic)}`

/** The clusters of an organization. */
export const clustersOf = async (org, o) =>
  (await get(resource(org, 'messagingclusters'), { background: true, ...o })).items
