// Parts of recorded requests, for the commands that repeat them.

/** Quotes a word for a POSIX shell. */
export const quote = s => /^[\w@%+=:,./-]+$/.test(s) ? s : `'${String(s).replace(/'/g, `'\\''`)}'`

/** JSON without white space; other text unchanged. */
export function compactJSON(body) {
  try {
    return JSON.stringify(JSON.parse(body))
  } catch {
    return body
  }
}

const resourcePath = new RegExp(
  '^/apis/cloud\\.vendor\\.io/v1alpha1' + // API group
  '(?:/namespaces/([^/]+))?' + // organization
  '/([a-z]+)' + // plural
  '(?:/([^/]+))?' + // name
  '(?:/([a-z]+))?$') // subresource

/** The parts of a path of the resource API; null for other paths. */
export function parseResource(url) {
  const u = new URL(url, 'http://x')
  const m = resourcePath.exec(u.pathname)
  return m && {
    org: m[1] && decodeURIComponent(m[1]),
    plural: m[2],
    name: m[3] && decodeURIComponent(m[3]),
    subresource: m[4],
    query: u.searchParams,
  }
}

const kinds = {
  serviceaccounts: 'ServiceAccount',
  serviceaccountbindings: 'ServiceAccountBinding',
  users: 'User',
  messaginginstances: 'MessagingInstance',
  messagingclusters: 'MessagingCluster',
  apikeys: 'APIKey',
  rolebindings: 'RoleBinding',
  roles: 'Role',
  clusterroles: 'ClusterRole',
  pools: 'Pool',
  poolmembers: 'PoolMember',
}

/** The kind of a resource type, by its plural. */
export const kindOf = plural => kinds[plural] ?? plural

/** The JSON body of an object with its apiVersion and kind; other text unchanged. */
export function withKind(body, plural) {
  try {
    const o = JSON.parse(body)
    return JSON.stringify({ apiVersion: 'cloud.vendor.io/v1alpha1', kind: kindOf(plural), ...o }, null, 2)
  } catch {
    return body
  }
}
