// A recorded request as a command. The token is never in it: $TOKEN is.
export const quote = s => /^[\w@%+=:,./-]+$/.test(s) ? s : `'${String(s).replace(/'/g, `'\\''`)}'`

/** The parts of a path of the resource API; null for others. */
export function parseResource(url) {
  const u = new URL(url, 'http://x')
  const m = /^\/apis\/cloud\.vendor\.io\/v1alpha1(?:\/namespaces\/([^/]+))?\/([a-z]+)(?:\/([^/]+))?(?:\/([a-z]+))?$/.exec(u.pathname)
  return m && { org: m[1] && decodeURIComponent(m[1]), kind: m[2], name: m[3] && decodeURIComponent(m[3]), sub: m[4], query: u.searchParams }
}

const compact = body => { try { return JSON.stringify(JSON.parse(body)) } catch { return body } }

/** @param {{method: string, url: string, body?: string|null, contentType?: string, headers?: object, whole?: boolean}} r */
export function curl(r) {
  if (r.command) return r.command
  const parts = ['curl --fail-with-body -sS']
  if (r.method !== 'GET') parts.push(`-X ${r.method}`)
  parts.push('-H "Authorization: Bearer $TOKEN"')
  if (r.contentType) parts.push(`-H ${quote('Content-Type: ' + r.contentType)}`)
  for (const [name, value] of Object.entries(r.headers ?? {})) parts.push(`-H ${quote(name + ': ' + value)}`)
  if (r.body != null) parts.push(r.whole === false ? '--data-binary @body' : `--data-binary ${quote(compact(r.body))}`)
  const watch = /[?&]watch=true/.test(r.url) ? '-N ' : ''
  parts.push(`${watch}"$BASE_URL"${quote(r.url)}`)
  return parts.join(' \\\n  ')
}

/** @returns {string} "" when kubectl has no such call */
export function kubectl(r) {
  const p = parseResource(r.url)
  if (!p) return r.method === 'GET' ? `kubectl get --raw ${quote(r.url)}` : ''
  const where = p.org ? ` -n ${quote(p.org)}` : p.kind === 'clusterroles' ? '' : ' -A'
  const what = p.kind + (p.name ? ' ' + quote(p.name) : '')
  const dry = p.query.get('dryRun') ? ' --dry-run=server' : ''
  const apply = verb => `kubectl ${verb}${where}${dry} -f - <<'END'\n${withKind(r.body, p)}\nEND`
  switch (r.method) {
    case 'GET': {
      const selector = p.query.get('fieldSelector')
      return `kubectl get ${what}${where}${selector ? ` --field-selector ${quote(selector)}` : ''}${p.query.get('watch') ? ' -w' : ''}`
    }
    case 'POST': return p.name ? '' : apply('create')
    case 'PUT': return apply('replace')
    case 'PATCH': return `kubectl patch ${what}${where}${dry} --type=merge -p ${quote(compact(r.body ?? '{}'))}`
    case 'DELETE': return `kubectl delete ${what}${where}${p.query.get('propagationPolicy') === 'Foreground' ? ' --cascade=foreground' : ''}`
  }
  return ''
}

const kinds = {
  serviceaccounts: 'ServiceAccount', serviceaccountbindings: 'ServiceAccountBinding', users: 'User', messaginginstances: 'MessagingInstance',
  messagingclusters: 'MessagingCluster', apikeys: 'APIKey', rolebindings: 'RoleBinding', roles: 'Role', clusterroles: 'ClusterRole', pools: 'Pool', poolmembers: 'PoolMember',
}

/** The kind of a plural. */
export const kindOf = plural => kinds[plural] ?? plural

function withKind(body, p) {
  try {
    const o = JSON.parse(body)
    return JSON.stringify({ apiVersion: 'cloud.vendor.io/v1alpha1', kind: kindOf(p.kind), ...o }, null, 2)
  } catch {
    return body
  }
}

/** @returns {string} "" when the command line has no such call */
export function freshet(r) {
  const p = parseResource(r.url)
  if (!p || p.sub) return ''
  const where = p.org ? ` -n ${quote(p.org)}` : ''
  const what = p.kind + (p.name ? ' ' + quote(p.name) : '')
  switch (r.method) {
    case 'GET': return `freshet get ${what}${where}`
    case 'POST': return p.name ? '' : `freshet apply${where} -f - <<'END'\n${withKind(r.body, p)}\nEND`
    case 'PUT': return `freshet apply${where} -f - <<'END'\n${withKind(r.body, p)}\nEND`
    case 'PATCH': return p.kind === 'apikeys' && /"revoke":\s*true/.test(r.body ?? '') ? `freshet apikey revoke ${quote(p.name)}${where}` : ''
    case 'DELETE': return `freshet delete ${what}${where}`
  }
  return ''
}

/** All forms that a request has. */
export const forms = r => [['curl', curl(r)], ['kubectl', kubectl(r)], ['freshet', freshet(r)]].filter(f => f[1])
