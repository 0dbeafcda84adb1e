package messagingcluster

import (
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/pools"
)

// hostOf returns the host name of a cluster.
func hostOf(cluster *object) string {
	if endpoints := cluster.Spec.ServiceEndpoints; len(endpoints) > 0 {
		return endpoints[0].DNSName
	}
	return ""
}

// urlOf returns the URL of a cluster without a host name of its own, or "" until the cluster runs.
func urlOf(cluster *object) string {
	for _, endpoint := range cluster.Status.Endpoints {
		if endpoint.Type == v1alpha1.EndpointService {
			return endpoint.PathURL
		}
	}
	return ""
}

// registryAtRoot reports whether the registries of an instance's clusters are at the root. Those of
// a standard instance are under /stream (docs/spec/registry.md#address).
func registryAtRoot(instance *v1alpha1.MessagingInstance) bool {
	return instance.Spec.Type != v1alpha1.InstanceStandard
}

// endpointsOf returns the full URLs of a cluster's services (docs/spec/resources.md#addresses).
func endpointsOf(plan *pools.Plan, cluster *object, instance *v1alpha1.MessagingInstance) []v1alpha1.ClusterEndpoint {
	registry := "/stream"
	if registryAtRoot(instance) {
		registry = ""
	}
	byName, byPath := plan.URLs(hostOf(cluster), cluster.Namespace, cluster.Name)
	services := []struct{ kind, path string }{
		{v1alpha1.EndpointService, ""},
		{v1alpha1.EndpointMessages, "/admin/rest/topics/v1"},
		{v1alpha1.EndpointAdmin, "/admin/v2"},
		{v1alpha1.EndpointTopics, "/rest-stream/admin/v1"},
		{v1alpha1.EndpointRegistry, registry},
	}
	list := make([]v1alpha1.ClusterEndpoint, 0, len(services))
	for _, s := range services {
		list = append(list, v1alpha1.ClusterEndpoint{Type: s.kind, URL: byName + s.path, PathURL: byPath + s.path})
	}
	if kafka, ok := kafkaEndpoint(plan, cluster); ok {
		list = append(list, kafka)
	}
	return list
}

// ProtocolStream is the key of the Kafka protocol in the spec.
const ProtocolStream = "stream"

// servesKafka reports whether a cluster serves the Kafka protocol.
func servesKafka(cluster *object) bool {
	if cluster.Spec.Config == nil {
		return false
	}
	_, on := cluster.Spec.Config.Protocols[ProtocolStream]
	return on
}

// kafkaEndpoint returns the bootstrap addresses of the Kafka protocol: with TLS at the cluster's
// own host name, without TLS at the server's address with the SASL name that selects the cluster.
func kafkaEndpoint(plan *pools.Plan, cluster *object) (v1alpha1.ClusterEndpoint, bool) {
	if !servesKafka(cluster) || plan.KafkaPlain == "" && plan.KafkaTLSPort == "" {
		return v1alpha1.ClusterEndpoint{}, false
	}
	endpoint := v1alpha1.ClusterEndpoint{Type: v1alpha1.EndpointStream}
	if plan.KafkaTLSPort != "" {
		endpoint.URL = "SASL_SSL://" + hostOf(cluster) + ":" + plan.KafkaTLSPort
	}
	if plan.KafkaPlain != "" {
		endpoint.SASLName = "@" + cluster.Namespace + "/" + cluster.Name
		endpoint.PathURL = "SASL_PLAINTEXT://" + plan.KafkaPlain
	}
	return endpoint, true
}

// Maximum lengths of a DNS label and of a whole name.
const (
	maxLabel = 63
	maxHost  = 253
)

// ValidateName implements store.NameValidator. The name of a new cluster must be one label of its
// host name. Clusters that were created before this rule keep their names.
func (*Kind) ValidateName(name string, prefix bool) []string {
	if problems := apivalidation.NameIsDNSSubdomain(name, prefix); len(problems) > 0 {
		return problems
	}
	switch {
	case strings.Contains(name, "."):
		return []string{"must have no dots, because the name is one label of the cluster's host name"}
	case len(name) > maxLabel && !prefix: // the name generator shortens a prefix
		return []string{"must be no more than 63 characters, because the name is one label of the cluster's host name"}
	}
	return nil
}

// validateHost rejects a name that makes the host name too long together with the organization and
// the domain.
func validateHost(o *object) field.ErrorList {
	if host := hostOf(o); len(host) > maxHost && len(o.Name) <= maxLabel {
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), o.Name,
			"must be shorter, because the cluster's host name "+host+" has more than 253 characters")}
	}
	return nil
}
