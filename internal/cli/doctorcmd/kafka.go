package doctorcmd

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"freshet.dev/client/resources"
)

// kafka checks the Kafka protocol of the cluster at the addresses that its status names. Without
// permission to read the cluster, it checks the address in FRESHET_KAFKA, which an environment
// file of 'freshet apikey create' sets, or else the default ports.
func (d *doctor) kafka(ctx context.Context, authenticated bool) {
	server, err := url.Parse(d.at.Server)
	if err != nil {
		return // the connection checks have reported it
	}
	addresses, err := d.kafkaAddresses(ctx, authenticated)
	if at := d.env.Getenv("FRESHET_KAFKA"); err != nil && at != "" { // of an environment file
		addresses, err = []string{cmp.Or(d.env.Getenv("FRESHET_KAFKA_SECURITY"), "SASL_SSL") + "://" + at}, nil
	}
	switch {
	case err != nil && d.config == nil && !d.kafkaReached:
		d.kafkaProtocol(ctx, server.Hostname())
		return
	case err != nil:
		return // the addresses of this machine were checked
	case len(addresses) == 0:
		d.good("stream", "cluster %s/%s has no address of the Kafka protocol: it is off for the cluster or the server",
			d.at.Organization, d.at.Cluster)
		return
	}
	for _, address := range addresses {
		d.kafkaListener(ctx, address, server.Hostname())
	}
}

var errClusterUnknown = errors.New("cluster cannot be read")

// kafkaAddresses returns the Kafka addresses of the cluster, such as SASL_SSL://HOST:PORT.
func (d *doctor) kafkaAddresses(ctx context.Context, authenticated bool) ([]string, error) {
	if !authenticated {
		return nil, errClusterUnknown
	}
	r, at, err := d.env.Resources()
	if err != nil {
		return nil, err
	}
	cluster, err := r.Get(ctx, resources.Ref{
		Kind: resources.MessagingClusters, Organization: at.Organization, Name: at.Cluster,
	})
	if err != nil {
		return nil, err
	}
	var addresses []string
	endpoints, _ := cluster.Field("status", "endpoints").([]any)
	for _, endpoint := range endpoints {
		fields, ok := endpoint.(map[string]any)
		if !ok || fields["type"] != "stream" {
			continue
		}
		for _, name := range []string{"url", "pathURL"} {
			if text, ok := fields[name].(string); ok && strings.Contains(text, "://") {
				addresses = append(addresses, text)
			}
		}
	}
	return addresses, nil
}

// kafkaListener sends a request of the Kafka protocol to an address. If its name does not
// resolve, the request goes to the host of the server.
func (d *doctor) kafkaListener(ctx context.Context, address, serverHost string) {
	const check = "stream"
	protocol, at, _ := strings.Cut(address, "://")
	host, port, err := net.SplitHostPort(at)
	if err != nil {
		d.failed(check, fmt.Sprintf("the address %s of the Kafka protocol is not valid", address),
			"'freshet describe mc' shows the addresses of the cluster.")
		return
	}
	target, note := at, ""
	if _, err := net.DefaultResolver.LookupHost(ctx, host); err != nil {
		target = net.JoinHostPort(serverHost, port)
		note = fmt.Sprintf("; the name %s does not resolve on this machine", host)
	}
	if err := d.kafkaRequest(ctx, target, host, protocol == "SASL_SSL"); err != nil {
		d.failed(check, fmt.Sprintf("the Kafka protocol of cluster %s/%s does not respond at %s: %v", d.at.Organization,
			d.at.Cluster, address, err),
			"Check that the server listens there (stream.plain, stream.tls), and check firewalls.")
		return
	}
	text := fmt.Sprintf("cluster %s/%s responds at %s%s", d.at.Organization, d.at.Cluster, address, note)
	if note != "" && !strings.HasSuffix(host, ".localhost") { // clients on this machine use the other address
		d.warned(check, text, "Kafka clients need the name: add it to your DNS or to /etc/hosts.")
		return
	}
	d.good(check, "%s", text)
}

// kafkaRequest sends an ApiVersions request, which needs no authentication, and checks that the
// response belongs to it.
func (d *doctor) kafkaRequest(ctx context.Context, target, name string, secured bool) error {
	conn, err := (&net.Dialer{Timeout: requestTimeout}).DialContext(ctx, "tcp", target)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // only a check
	if secured {
		config := &tls.Config{ServerName: name, MinVersion: tls.VersionTLS12}
		if d.at.CA != "" {
			config.RootCAs = x509.NewCertPool()
			config.RootCAs.AppendCertsFromPEM([]byte(d.at.CA))
		}
		conn = tls.Client(conn, config)
	}
	if err := conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return err
	}
	const apiVersions, correlation, clientID = 18, 7, "freshet"
	request := binary.BigEndian.AppendUint32(nil, uint32(2+2+4+2+len(clientID)))
	request = binary.BigEndian.AppendUint16(request, apiVersions)
	request = binary.BigEndian.AppendUint16(request, 0) // version of the request
	request = binary.BigEndian.AppendUint32(request, correlation)
	request = binary.BigEndian.AppendUint16(request, uint16(len(clientID)))
	request = append(request, clientID...)
	if _, err := conn.Write(request); err != nil {
		return err
	}
	header := make([]byte, 8) // length and correlation id
	if _, err := io.ReadFull(conn, header); err != nil {
		return fmt.Errorf("reading the response: %w", err)
	}
	if binary.BigEndian.Uint32(header[4:]) != correlation {
		return errors.New("program at the address does not use the Kafka protocol")
	}
	return nil
}
