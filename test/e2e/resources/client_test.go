package resources

import (
	"context"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/generated/informers/externalversions"
	"freshet/api/v1alpha1"
	"freshet/test/testserver"
)

// connect returns a client with the kubeconfig that the server wrote, over HTTPS. It dials
// the current value of address.
func connect(t *testing.T, s *testserver.Server, address *atomic.Value, binary bool) versioned.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(s.DataDir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	config.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address.Load().(string))
	}
	if binary {
		config.ContentConfig = rest.ContentConfig{
			ContentType:        "application/vnd.kubernetes.protobuf",
			AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
		}
	}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func hostOf(t *testing.T, address string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Host
}

// TestInformersSurviveACrash checks that informers miss no event during a kill -9 and a
// restart, in JSON and in protobuf.
func TestInformersSurviveACrash(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, dir, testserver.Options{})
	var address atomic.Value
	address.Store(hostOf(t, server.HTTPS))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	seen := map[string]map[string]bool{}
	writer := connect(t, server, &address, true)
	for form, binary := range map[string]bool{"JSON": false, "protobuf": true} {
		seen[form] = map[string]bool{}
		factory := externalversions.NewSharedInformerFactory(connect(t, server, &address, binary), 0)
		_, err := factory.Cloud().V1alpha1().Users().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(obj any) {
				mu.Lock()
				defer mu.Unlock()
				seen[form][obj.(metav1.Object).GetName()] = true
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
	}
	sees := func(name string) {
		t.Helper()
		eventually(t, "both informers see "+name, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return seen["JSON"][name] && seen["protobuf"][name]
		})
	}
	create := func(name string) {
		t.Helper()
		_, err := writer.CloudV1alpha1().Users("acme").Create(t.Context(), &v1alpha1.User{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.UserSpec{Email: name + "@example.com"},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	create("before")
	sees("before")
	server.Kill()
	again := start(t, dir, testserver.Options{DataDir: server.DataDir})
	address.Store(hostOf(t, again.HTTPS))
	create("after")
	sees("after")
}
