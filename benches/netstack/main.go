// gVisor's netstack on a TUN interface, as the peer of one benchmark.
//
// The program opens a TUN interface with the name of its first argument, and prints "ready". Then it reads a command from each line of its standard input:
//
//	send PORT CHUNK DELAY    connects to PORT of the kernel, writes CHUNK bytes at a time until the line "stop" comes, closes, and prints "sent N"
//	receive PORT CHUNK MILLIS prints "listening", accepts, reads CHUNK bytes at a time, and prints "rate N" (bytes per second, counted for MILLIS milliseconds
//	                         after a tenth of that) and, at the end of the stream, "received N"
//
// DELAY is 1 with Nagle's algorithm, and 0 without. The program ends with its standard input, or with a message at an error.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/link/tun"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	nic = 1
	mtu = 1500
	// The benchmark's kernel has these limits too.
	largestSend    = 4 << 20
	largestReceive = 6 << 20
)

var (
	kernel = tcpip.AddrFrom4([4]byte{192, 0, 2, 1})
	own    = tcpip.AddrFrom4([4]byte{192, 0, 2, 2})
)

func failed(what string, err tcpip.Error) error {
	return fmt.Errorf("%s: %s", what, err)
}

// start makes a host on the TUN interface.
func start(name string) (*stack.Stack, error) {
	fd, err := tun.Open(name)
	if err != nil {
		return nil, fmt.Errorf("opening a TUN device: %w", err)
	}
	// This device has no offloads, so netstack cuts super-segments itself.
	link, err := fdbased.New(&fdbased.Options{FDs: []int{fd}, MTU: mtu, GVisorGSOEnabled: true})
	if err != nil {
		return nil, err
	}
	host := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	sack := tcpip.TCPSACKEnabled(true)
	control := tcpip.CongestionControlOption("cubic")
	moderate := tcpip.TCPModerateReceiveBufferOption(true)
	send := tcpip.TCPSendBufferSizeRangeOption{Min: 4 << 10, Default: largestSend, Max: largestSend}
	receive := tcpip.TCPReceiveBufferSizeRangeOption{Min: 4 << 10, Default: 1 << 20, Max: largestReceive}
	for _, option := range []tcpip.SettableTransportProtocolOption{&sack, &control, &moderate, &send, &receive} {
		if err := host.SetTransportProtocolOption(tcp.ProtocolNumber, option); err != nil {
			return nil, failed("setting an option", err)
		}
	}
	if err := host.CreateNIC(nic, link); err != nil {
		return nil, failed("making an interface", err)
	}
	address := tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: own.WithPrefix()}
	if err := host.AddProtocolAddress(nic, address, stack.AddressProperties{}); err != nil {
		return nil, failed("adding an address", err)
	}
	host.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	return host, nil
}

// connect is what gonet does, with the choice of Nagle's algorithm before the connection is made.
func connect(host *stack.Stack, port uint16, delay bool) (*gonet.TCPConn, error) {
	var queue waiter.Queue
	endpoint, err := host.NewEndpoint(tcp.ProtocolNumber, ipv4.ProtocolNumber, &queue)
	if err != nil {
		return nil, failed("making an endpoint", err)
	}
	endpoint.SocketOptions().SetDelayOption(delay)
	entry, writable := waiter.NewChannelEntry(waiter.WritableEvents)
	queue.EventRegister(&entry)
	defer queue.EventUnregister(&entry)
	err = endpoint.Connect(tcpip.FullAddress{NIC: nic, Addr: kernel, Port: port})
	if _, started := err.(*tcpip.ErrConnectStarted); started {
		<-writable
		err = endpoint.LastError()
	}
	if err != nil {
		endpoint.Close()
		return nil, failed("connecting", err)
	}
	return gonet.NewTCPConn(&queue, endpoint), nil
}

func send(host *stack.Stack, port uint16, chunk int, delay bool, stop *atomic.Bool) error {
	connection, err := connect(host, port, delay)
	if err != nil {
		return err
	}
	message := make([]byte, chunk)
	var sent uint64
	for !stop.Load() {
		n, err := connection.Write(message)
		sent += uint64(n)
		if err != nil {
			return fmt.Errorf("sending: %w", err)
		}
	}
	if err := connection.Close(); err != nil {
		return err
	}
	fmt.Println("sent", sent)
	return nil
}

// listeners stay open: a port cannot be listened at again soon after.
var listeners = map[uint16]*gonet.TCPListener{}

func receive(host *stack.Stack, port uint16, chunk int, span time.Duration) error {
	listener := listeners[port]
	if listener == nil {
		var err error
		listener, err = gonet.ListenTCP(host, tcpip.FullAddress{NIC: nic, Addr: own, Port: port}, ipv4.ProtocolNumber)
		if err != nil {
			return err
		}
		listeners[port] = listener
	}
	fmt.Println("listening")
	connection, err := listener.Accept()
	if err != nil {
		return err
	}
	defer connection.Close()
	return count(connection, chunk, span)
}

// count reads to the end of the stream, and says how fast it came: between the first read after a tenth of the span, and the first one a span later.
func count(connection net.Conn, chunk int, span time.Duration) error {
	buffer := make([]byte, chunk)
	begin := time.Now()
	var from time.Time
	var before, total uint64
	known := false
	for {
		n, err := connection.Read(buffer)
		total += uint64(n)
		now := time.Now()
		if from.IsZero() {
			if now.Sub(begin) >= span/10 {
				from, before = now, total
			}
		} else if !known && now.Sub(from) >= span {
			fmt.Println("rate", float64(total-before)/now.Sub(from).Seconds())
			known = true
		}
		if errors.Is(err, io.EOF) {
			fmt.Println("received", total)
			return nil
		}
		if err != nil {
			return fmt.Errorf("receiving: %w", err)
		}
	}
}

// number reads an argument of a command.
func number(words []string, index int) (uint64, error) {
	if index >= len(words) {
		return 0, errors.New("a command with too few words")
	}
	return strconv.ParseUint(words[index], 10, 64)
}

func obey(host *stack.Stack, words []string, stop *atomic.Bool) error {
	port, err := number(words, 1)
	if err != nil || port > 65535 {
		return errors.New("a command without a port")
	}
	chunk, err := number(words, 2)
	if err != nil || chunk == 0 || chunk > 1<<30 {
		return errors.New("a command without a size")
	}
	last, err := number(words, 3)
	if err != nil {
		return err
	}
	switch words[0] {
	case "send":
		return send(host, uint16(port), int(chunk), last != 0, stop)
	case "receive":
		return receive(host, uint16(port), int(chunk), time.Duration(last)*time.Millisecond)
	}
	return errors.New("an unknown command")
}

func run() error {
	if len(os.Args) != 2 {
		return errors.New("one argument: the name of a TUN interface")
	}
	host, err := start(os.Args[1])
	if err != nil {
		return err
	}
	fmt.Println("ready")
	var stop atomic.Bool
	commands := make(chan []string)
	go func() {
		defer close(commands)
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			words := strings.Fields(lines.Text())
			switch {
			case len(words) == 1 && words[0] == "stop":
				stop.Store(true)
			case len(words) > 0:
				stop.Store(false)
				commands <- words
			}
		}
		// The one who started this program is gone.
		os.Exit(0)
	}()
	for words := range commands {
		if err := obey(host, words, &stop); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
