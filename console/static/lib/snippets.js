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
  if (!p) return ofCluster(r)
  if (p.sub) return ''
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

/** The command for a call on a cluster's topics, groups or schemas. */
function ofCluster(r) {
  const u = new URL(r.url, 'http://x')
  const m = /^\/clusters\/([^/]+)\/([^/]+)(\/.*)$/.exec(u.pathname)
  if (!m) return ''
  const parts = m[3].split('/').slice(1).map(decodeURIComponent)
  const where = ` -n ${quote(decodeURIComponent(m[1]))} --cluster ${quote(decodeURIComponent(m[2]))}`
  const run = (...words) => `freshet ${words.filter(w => w !== '').join(' ')}${where}`
  const path = parts.join('/'), q = u.searchParams
  const topic = list => quote(list.slice(0, 3).join('/').replace(/^public\/default\//, ''))
  const body = () => { try { return JSON.parse(r.body) } catch { return r.body } }
  if (/^admin\/rest\/topics\/v1\//.test(path)) {
    const t = parts.slice(4), key = r.headers?.['X-Msg-Partition-Key']
    if (t[3] === 'tail') return run('tail', topic(t), q.get('from') === 'earliest' ? '--from earliest' : '')
    if (t.length === 4 && t[3] === 'message' && r.method === 'POST' && r.body && !r.body.startsWith('<')) return run('produce', key && !r.headers['X-Msg-Partition-Key-Encoding'] ? `-k ${quote(key)}` : '', topic(t), quote(r.body))
    if (t[4] === 'message' && t.length === 5) return r.method === 'POST' ? run('consume', topic(t), `-s ${quote(t[3])} -c 1 --no-ack`) : run('ack', topic(t), quote(t[3]), quote(String(r.body)))
    return ''
  }
  if (/^admin\/v2\/persistent\//.test(path)) {
    const t = parts.slice(3), force = q.get('force') === 'true' ? '--force' : ''
    if (t.length === 3 || t[3] === 'partitions') return { PUT: run('topic create', topic(t), t[3] ? `-p ${r.body}` : ''), DELETE: run('topic delete', topic(t), force) }[r.method] ?? ''
    if (t[3] === 'stats' || t[3] === 'partitioned-stats') return run('topic describe', topic(t))
    if (t[3] !== 'subscription') return ''
    if (t.length === 5) return { PUT: run('subscription create', topic(t), quote(t[4]), `--from ${typeof body() === 'string' ? body() : body()?.position ?? 'latest'}`), DELETE: run('subscription delete', topic(t), quote(t[4]), force) }[r.method] ?? ''
    if (t[5] === 'resetcursor') return run('subscription reset', topic(t), quote(t[4]), `--to ${t[6] ? new Date(Number(t[6])).toISOString() : quote(String(body()))}`)
    return t[5] === 'position' ? run('subscription peek', topic(t), quote(t[4])) : ''
  }
  if (path === 'rest-stream/admin/v1/topics') return run('topic list')
  if (/^rest-stream\/admin\/v1\/groups/.test(path)) {
    const g = parts[4], tenant = q.get('tenant') && q.get('tenant') !== 'public' ? `--tenant ${quote(q.get('tenant'))}` : ''
    if (!g) return run('group list')
    if (parts[5] === 'offsets') { const o = body()?.offsets?.[0]; return o?.position && body().offsets.length === 1 ? run('group reset', quote(g), `--topic ${quote(o.topic_name)} --to ${o.position}`, tenant) : '' }
    return run(`group ${r.method === 'DELETE' ? 'delete' : 'describe'}`, quote(g), tenant)
  }
  const s = parts[0] === 'stream' ? parts.slice(1) : parts
  if (s[0] === 'config' && s[1]) return run('schema level', quote(s[1]), r.method === 'PUT' ? body()?.compatibility ?? '' : '')
  if (s[0] === 'mode') return run('schema mode', r.method === 'PUT' ? body()?.mode ?? '' : '')
  if (s[0] === 'registry' && s[2] === 'diff') { const d = body(); return d?.from?.version && d.to?.version ? run('schema diff', quote(d.from.subject), d.from.version, d.to.version) : '' }
  if (s[0] === 'schemas' && s[1] === 'ids' && s.length === 3) return run('schema get', `--id ${s[2]}`)
  if (s[0] !== 'subjects' || r.method === 'POST') return ''
  if (r.method === 'DELETE') return run('schema delete', quote(s[1]), s[3] ?? '', q.get('permanent') === 'true' ? '--permanent' : '')
  return s.length < 3 ? run('schema list') : s[3] ? run('schema get', quote(s[1]), s[3] === 'latest' ? '' : s[3]) : run('schema list', quote(s[1]))
}

const headersOf = r => Object.entries({ ...(r.contentType && { 'Content-Type': r.contentType }), ...r.headers })
const literal = s => JSON.stringify(String(s)) // is one in Go and in Python too
const raw = s => s.includes('`') || s.includes('\r') ? literal(s) : '`' + s + '`'

/** A whole program in Go, of the standard library. */
export function golang(r) {
  if (r.command) return ''
  const body = r.body == null ? 'nil' : r.whole === false ? 'body' : 'strings.NewReader(body)'
  const imports = ['io', 'log', 'net/http', 'os', ...(body === 'strings.NewReader(body)' ? ['strings'] : [])]
  const fails = '\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n'
  return `package main\n\nimport (\n${imports.map(i => `\t${literal(i)}\n`).join('')})\n\nfunc main() {\n` +
    (r.body == null ? '' : r.whole === false ? `\tbody, err := os.Open("body")\n${fails}` : `\tbody := ${raw(compact(r.body))}\n`) +
    `\treq, err := http.NewRequest(${literal(r.method)}, os.Getenv("BASE_URL")+${literal(r.url)}, ${body})\n${fails}` +
    `\treq.Header.Set("Authorization", "Bearer "+os.Getenv("TOKEN"))\n` + headersOf(r).map(([k, v]) => `\treq.Header.Set(${literal(k)}, ${literal(v)})\n`).join('') +
    `\tres, err := http.DefaultClient.Do(req)\n${fails}\tdefer res.Body.Close()\n\tif _, err := io.Copy(os.Stdout, res.Body); err != nil {\n\t\tlog.Fatal(err)\n\t}\n\tif res.StatusCode >= 400 {\n\t\tlog.Fatal(res.Status)\n\t}\n}`
}

/** A whole program in Python 3, of the standard library. */
export function python(r) {
  if (r.command) return ''
  const data = r.body == null ? '' : r.whole === false ? '    data=open("body", "rb").read(),\n' : `    data=${literal(compact(r.body))}.encode(),\n`
  return `import os, sys, urllib.error, urllib.request\n\nrequest = urllib.request.Request(\n    os.environ["BASE_URL"] + ${literal(r.url)},\n    method=${literal(r.method)},\n${data}` +
    `    headers={\n        "Authorization": "Bearer " + os.environ["TOKEN"],\n${headersOf(r).map(([k, v]) => `        ${literal(k)}: ${literal(v)},\n`).join('')}    },\n)\n` +
    'try:\n    with urllib.request.urlopen(request) as response:\n        for line in response:\n            print(line.decode(), end="", flush=True)\nexcept urllib.error.HTTPError as refused:\n    sys.exit(f"{refused.code} {refused.read().decode()}")'
}

/** All forms that a request has. */
export const forms = r => [['curl', curl(r)], ['kubectl', kubectl(r)], ['freshet', freshet(r)], ['Go', golang(r)], ['Python', python(r)]].filter(f => f[1])
