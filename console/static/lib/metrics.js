// The metrics of an organization. They are polled, and the last samples are kept for
// numbers and plots.
import { html } from './html.js'
import { get } from './api.js'
import { poll } from './watch.js'
import { emit, on, update } from './store.js'
import { absolute, short } from './format.js'

const unescapeLabel = text => text.replace(/\\n/g, '\n').replace(/\\(.)/g, '$1')

/** Parses the Prometheus text format into a list of {name, labels, value}. */
export function parseMetrics(text) {
  const out = []
  for (const line of text.split('\n')) {
    const m = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line)
    if (!m) continue
    const labels = {}
    for (const l of (m[2] ?? '').matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[l[1]] = unescapeLabel(l[2])
    out.push({ name: m[1], labels, value: Number(m[3]) })
  }
  return out
}

/** The increase per second between samples; 0 after the counter was reset, null without a sample. */
export const rates = (times, values) => values.map((v, i) => {
  if (i === 0 || v == null || values[i - 1] == null) return null
  return Math.max(0, v - values[i - 1]) / Math.max(.001, times[i] - times[i - 1])
})

const maxSamples = 150

function addSample(s, list) {
  s.times.push(Date.now() / 1000)
  const last = s.times.length - 1
  for (const byKey of s.byName.values()) {
    for (const values of byKey.values()) values.push(0)
  }
  for (const { name, labels, value } of list) {
    if (!/^freshet_(namespace|quota|messaging)/.test(name)) continue
    if (!s.byName.has(name)) s.byName.set(name, new Map())
    const byKey = s.byName.get(name)
    const key = labels.cluster ?? labels.resource ?? ''
    if (!byKey.has(key)) byKey.set(key, Array(s.times.length).fill(0))
    byKey.get(key)[last] += value
  }
  if (s.times.length > maxSamples) {
    s.times.shift()
    for (const byKey of s.byName.values()) {
      for (const values of byKey.values()) values.shift()
    }
  }
  s.ready = s.times.length > 1
}

/** Polls the metrics of the organization. total(name) adds up all clusters. */
export function metricsOf(ctx, interval = 2000) {
  const s = { times: [], byName: new Map(), error: null, ready: false, total: name => total(s, name) }
  const url = `/system/v1alpha1/metrics?organization=${encodeURIComponent(ctx.org)}`
  poll(async () => {
    if (s.error?.status === 403) return
    try {
      const list = parseMetrics(await get(url, { accept: 'text/plain', background: true, signal: ctx.signal }))
      s.error = null
      addSample(s, list)
    } catch (e) {
      if (e.name !== 'AbortError') s.error = e
    }
    update()
    emit('metrics')
  }, interval, ctx.signal)
  return s
}

function total(s, name) {
  const all = [...(s.byName.get(name)?.values() ?? [])]
  return s.times.map((_, i) => all.reduce((n, values) => n + (values[i] ?? 0), 0))
}

let library

/** Loads uPlot and its style sheet. */
function loadLibrary() {
  if (!library) {
    const sheet = document.createElement('link')
    const href = new URL('../vendor/uPlot.min.css', import.meta.url).href
    Object.assign(sheet, { rel: 'stylesheet', href })
    document.head.append(sheet)
    library = import('../vendor/uPlot.esm.js')
  }
  return library
}

const timeOfDay = seconds => absolute(seconds * 1000).slice(11)

function plotOptions(keys, unit, width) {
  const css = getComputedStyle(document.documentElement)
  const colour = name => css.getPropertyValue(name).trim()
  const strokes = ['--accent', '--info', '--warn', '--ok', '--bad', '--muted'].map(colour)
  const axis = {
    stroke: colour('--muted'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
    font: '11px system-ui',
    gap: 6,
  }
  const line = (key, i) => ({
    label: key || 'all',
    stroke: strokes[i],
    width: 1.6,
    points: { show: false },
    value: (u, v) => v == null ? '–' : `${short(v)} ${unit}`,
    ...(keys.length < 2 && { fill: strokes[i] + '22' }),
  })
  return {
    width,
    height: 180,
    cursor: { y: false },
    legend: { live: true },
    padding: [10, 8, 0, 0],
    scales: { y: { range: (u, min, max) => [0, Math.max(max * 1.1, 1)] } },
    axes: [
      { ...axis, space: 80, values: (u, list) => list.map(timeOfDay) },
      { ...axis, size: 52, values: (u, list) => list.map(short) },
    ],
    series: [
      { label: 'Time', value: (u, t) => t == null ? '–' : timeOfDay(t) },
      ...(keys.length ? keys : ['no data yet']).map(line),
    ],
  }
}

/** <live-plot .data=${{series, name, unit}}>: a plot of one metric, with a line per cluster. */
class LivePlot extends HTMLElement {
  connectedCallback() {
    this.removed = new AbortController()
    on('metrics', () => this.draw(), this.removed.signal)
    on('theme', () => {
      this.clear()
      this.draw()
    }, this.removed.signal)
    this.resizes = new ResizeObserver(() => this.plot?.setSize({ width: this.clientWidth, height: 180 }))
    this.resizes.observe(this)
    this.draw()
  }

  disconnectedCallback() {
    this.removed.abort()
    this.resizes.disconnect()
    this.clear()
  }

  set data(data) { this.current = data }

  clear() {
    this.plot?.destroy()
    this.plot = null
  }

  async draw() {
    const { series, name, unit } = this.current
    const byKey = series.byName.get(name) ?? new Map()
    const keys = [...byKey.keys()].sort().slice(0, 6)
    const values = key => unit.endsWith('/s') ? rates(series.times, byKey.get(key)) : byKey.get(key)
    const data = [series.times, ...keys.map(values)]
    if (!keys.length) data.push(series.times.map(() => 0))
    if (this.plot && this.keys === keys.join()) {
      this.plot.setData(data)
      return
    }
    const { default: uPlot } = await loadLibrary()
    if (!this.isConnected) return
    this.plot?.destroy()
    this.keys = keys.join()
    this.plot = new uPlot(plotOptions(keys, unit, this.clientWidth), data, this)
  }
}
customElements.define('live-plot', LivePlot)

export const plotOf = (series, name, unit) => html`<live-plot .data=${{ series, name, unit }}></live-plot>`
