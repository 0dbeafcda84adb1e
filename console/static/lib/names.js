// Names of topics and subjects.

/** Parses a name of the topic list: a bare topic, tenant.namespace.topic, or the full name. */
export function parseTopic(text) {
  const full = /^(?:persistent:\/\/)?([^/]+)\/([^/]+)\/(.+)$/s.exec(text)
  if (full) return { tenant: full[1], namespace: full[2], topic: full[3] }
  const [tenant, namespace, ...rest] = text.split('.')
  if (rest.length && tenant && namespace) return { tenant, namespace, topic: rest.join('.') }
  return { tenant: 'public', namespace: 'default', topic: text }
}

/** The name of a topic in the Kafka protocol and in subjects of the registry. */
export const kafkaName = t =>
  t.tenant === 'public' && t.namespace === 'default' ? t.topic : `${t.tenant}.${t.namespace}.${t.topic}`

/** The tenant/namespace whose permissions apply to a subject. */
export function namespaceOfSubject(subject) {
  const full = /^persistent:\/\/([^/]+)\/([^/]+)\/(.+)$/.exec(subject)
  if (full) return `${full[1]}/${full[2]}`
  const parts = subject.split('.')
  return parts.length === 3 ? `${parts[0]}/${parts[1]}` : 'public/default'
}
