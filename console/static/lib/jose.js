// API keys are opened here, with WebCrypto alone; nothing of it goes anywhere.
import { fromBase64, toBase64 } from './format.js'

const wrap = (label, data) => `-----BEGIN ${label}-----\n${toBase64(data).match(/.{1,64}/g).join('\n')}\n-----END ${label}-----\n`

/** A new key pair: the public half as PEM to send, the private one as PEM to keep. */
export async function newKeyPair(bits = 2048) {
  const pair = await crypto.subtle.generateKey({ name: 'RSA-OAEP', modulusLength: bits, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-1' }, true, ['decrypt'])
  return {
    publicPEM: wrap('PUBLIC KEY', await crypto.subtle.exportKey('spki', pair.publicKey)),
    privatePEM: wrap('PRIVATE KEY', await crypto.subtle.exportKey('pkcs8', pair.privateKey)),
  }
}

const der = (tag, ...parts) => {
  const length = parts.reduce((n, p) => n + p.length, 0)
  const head = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  const out = new Uint8Array(1 + head.length + length)
  out.set([tag, ...head])
  let at = 1 + head.length
  for (const p of parts) { out.set(p, at); at += p.length }
  return out
}

/** PKCS #1, as openssl wrote for long, in the PKCS #8 that browsers read. */
export const pkcs1to8 = key => der(0x30, new Uint8Array([2, 1, 0]),
  der(0x30, new Uint8Array([6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0])), der(4, key))

/** The DER of a private key in a PEM file. */
export function privateKeyOf(pem) {
  const m = /-----BEGIN ([A-Z ]+)-----([\s\S]+?)-----END \1-----/.exec(pem)
  if (!m) throw new Error('This is no PEM file: a line -----BEGIN PRIVATE KEY----- is missing.')
  if (m[1].includes('PUBLIC')) throw new Error('This is the public half. The private key of the same pair is needed.')
  if (m[1].includes('ENCRYPTED') || /Proc-Type|DEK-Info/.test(m[2])) throw new Error('The private key is protected by a password. Remove it first: openssl pkey -in key.pem -out open.pem')
  if (m[1] === 'RSA PRIVATE KEY') return pkcs1to8(fromBase64(m[2]))
  if (m[1] === 'PRIVATE KEY') return fromBase64(m[2])
  throw new Error(`A ${m[1].toLowerCase()} does not open API keys; an RSA private key does.`)
}

/** Opens a compact JWE (RSA-OAEP or RSA-OAEP-256, AES-GCM) with a private key in PEM. */
export async function openJWE(jwe, pem) {
  const parts = jwe.trim().split('.')
  if (parts.length !== 5) throw new Error('The encrypted token does not have five parts.')
  const [header, wrapped, iv, text, tag] = parts
  const { alg, enc } = JSON.parse(new TextDecoder().decode(fromBase64(header)))
  const hash = { 'RSA-OAEP': 'SHA-1', 'RSA-OAEP-256': 'SHA-256' }[alg]
  if (!hash || !/^A(128|256)GCM$/.test(enc)) throw new Error(`The token is encrypted with ${alg} and ${enc}, which is not known here.`)
  const der = privateKeyOf(pem)
  let content
  try {
    const key = await crypto.subtle.importKey('pkcs8', der, { name: 'RSA-OAEP', hash }, false, ['decrypt'])
    content = await crypto.subtle.importKey('raw', await crypto.subtle.decrypt({ name: 'RSA-OAEP' }, key, fromBase64(wrapped)), 'AES-GCM', false, ['decrypt'])
  } catch {
    throw new Error('This private key does not open the token: it is not of the pair that the API key was made with.')
  }
  const sealed = new Uint8Array([...fromBase64(text), ...fromBase64(tag)])
  const plain = await crypto.subtle.decrypt({ name: 'AES-GCM', iv: fromBase64(iv), additionalData: new TextEncoder().encode(header) }, content, sealed)
  return new TextDecoder().decode(plain)
}
