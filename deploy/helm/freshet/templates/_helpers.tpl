{{/*
The names and values that several templates use. "freshet generate kubernetes" renders these
templates too, with the functions of internal/cli/generatecmd/chart only.
*/}}

{{- define "freshet.name" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains "freshet" .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-freshet" (.Release.Name | trunc 32 | trimSuffix "-") }}
{{- end -}}
{{- end }}

{{- define "freshet.selector" -}}
app.kubernetes.io/name: freshet
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "freshet.labels" -}}
{{ include "freshet.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "freshet.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* The domain of the pods' names. */}}
{{- define "freshet.podDomain" -}}
{{ include "freshet.name" . }}-members.{{ .Release.Namespace }}.svc
{{- end }}

{{- define "freshet.serviceHost" -}}
{{ include "freshet.name" . }}.{{ .Release.Namespace }}.svc
{{- end }}

{{- define "freshet.baseURL" -}}
{{ .Values.baseURL | default (printf "https://%s:%d" (include "freshet.serviceHost" .) (int .Values.service.https)) }}
{{- end }}

{{- define "freshet.tlsSecret" -}}
{{- if .Values.tls.certManager.enabled -}}
{{ include "freshet.name" . }}-tls
{{- else -}}
{{ .Values.tls.secretName }}
{{- end -}}
{{- end }}

{{- define "freshet.ensembleSecret" -}}
{{ .Values.ensemble.secretName | default (printf "%s-ensemble" (include "freshet.name" .)) }}
{{- end }}

{{/* The names of the certificate for clients, as a YAML list. */}}
{{- define "freshet.certificateNames" -}}
{{- $name := include "freshet.name" . -}}
- localhost
- {{ $name }}
- {{ $name }}.{{ .Release.Namespace }}
- {{ include "freshet.serviceHost" . }}
- {{ include "freshet.serviceHost" . }}.cluster.local
{{- range $i := until (int .Values.members) }}
- {{ printf "%s-%d.%s" $name $i (include "freshet.podDomain" $) }}
{{- if $.Values.kafka.external.enabled }}
- {{ printf "%s-%d.%s" $name $i $.Values.kafka.external.domain }}
{{- end }}
{{- end }}
{{- if .Values.baseURL }}
- {{ (urlParse .Values.baseURL).hostname }}
{{- end }}
{{- range .Values.tls.names }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{/* The settings that the chart's defaults, the values and the chart itself make; the last one wins. */}}
{{- define "freshet.config" -}}
{{- $defaults := dict "log" (dict "format" "json") -}}
{{- $own := fromYaml (include "freshet.ownConfig" .) -}}
{{- mergeOverwrite $defaults (deepCopy .Values.config) $own | toYaml }}
{{- end }}

{{/* An address on which the pod listens; the argument is a list of the root and the port. */}}
{{- define "freshet.listen" -}}
{{- $address := (index . 0).Values.listenAddress -}}
{{- if contains ":" $address -}}
[{{ $address }}]:{{ index . 1 }}
{{- else -}}
{{ $address }}:{{ index . 1 }}
{{- end -}}
{{- end }}

{{- define "freshet.ownConfig" -}}
{{- $name := include "freshet.name" . -}}
dataDir: /data/freshet
http: "off"
https: {{ include "freshet.listen" (list . 8443) | quote }}
ops: {{ if .Values.metrics.enabled }}{{ include "freshet.listen" (list . 8081) | quote }}{{ else }}"off"{{ end }}
baseURL: {{ include "freshet.baseURL" . | quote }}
stream:
  plain: "off"
  tls: {{ if .Values.kafka.enabled }}{{ include "freshet.listen" (list . 9093) | quote }}{{ else }}"off"{{ end }}
tls:
{{- if include "freshet.tlsSecret" . }}
  certFile: /tls/tls.crt
  keyFile: /tls/tls.key
{{- else }}
  names: {{- include "freshet.certificateNames" . | nindent 4 }}
{{- end }}
{{- if .Values.backup.enabled }}
backup:
  directory: /backup
  every: {{ .Values.backup.every }}
  keep: {{ int .Values.backup.keep }}
  withoutKeys: {{ .Values.backup.withoutKeys }}
{{- end }}
{{- if gt (int .Values.members) 1 }}
members:
  listen:
    internal: {{ include "freshet.listen" (list . 7443) | quote }}
    etcd: {{ include "freshet.listen" (list . 7380) | quote }}
    log: {{ include "freshet.listen" (list . 7422) | quote }}
  list:
  {{- range $i := until (int .Values.members) }}
  {{- $host := printf "%s-%d.%s" $name $i (include "freshet.podDomain" $) }}
  - name: {{ $name }}-{{ $i }}
    internal: {{ $host }}:7443
    etcd: {{ $host }}:7380
    log: {{ $host }}:7422
  {{- end }}
{{- end }}
{{- end }}
