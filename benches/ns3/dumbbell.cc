// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Bulk flows through a dumbbell, the same as in src/groups/simulator.rs: 1 Gbit/s and 34 ms in the middle, 10 Gbit/s
// and 0.5 ms at the ends, a queue of 6000 packets, SACK and timestamps, NewReno.
//
//     dumbbell FLOWS SECONDS
//
// Prints the data packets that left the bottleneck, the CPU time of the run in seconds, and its peak memory in kilobytes.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <sys/resource.h>

using namespace ns3;

static uint64_t packets = 0;

static void
Count(Ptr<const Packet> packet)
{
    packets += packet->GetSize() > 100;
}

int
main(int argc, char* argv[])
{
    if (argc != 3)
    {
        std::fprintf(stderr, "usage: dumbbell FLOWS SECONDS\n");
        return 2;
    }
    const uint32_t flows = std::strtoul(argv[1], nullptr, 10);
    const double seconds = std::strtod(argv[2], nullptr);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpNewReno"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(6 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(6 << 20));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));

    PointToPointHelper middle;
    middle.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
    middle.SetChannelAttribute("Delay", StringValue("34ms"));
    middle.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("6000p"));
    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
    access.SetChannelAttribute("Delay", StringValue("500us"));
    access.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("10000p"));

    NodeContainer routers;
    routers.Create(2);
    NodeContainer clients;
    clients.Create(flows);
    NodeContainer servers;
    servers.Create(flows);
    InternetStackHelper internet;
    internet.InstallAll();

    NetDeviceContainer bottleneck = middle.Install(routers);
    Ipv4AddressHelper address("10.0.0.0", "255.255.255.252");
    address.Assign(bottleneck);
    for (uint32_t i = 0; i < flows; i++)
    {
        address.NewNetwork();
        address.Assign(access.Install(clients.Get(i), routers.Get(0)));
        address.NewNetwork();
        Ipv4InterfaceContainer ends = address.Assign(access.Install(routers.Get(1), servers.Get(i)));
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(ends.GetAddress(1), 80));
        bulk.SetAttribute("SendSize", UintegerValue(1448));
        bulk.Install(clients.Get(i)).Start(MilliSeconds(10 * i));
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 80));
        sink.Install(servers.Get(i)).Start(Seconds(0));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    bottleneck.Get(0)->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&Count));

    const std::clock_t start = std::clock();
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    const double took = double(std::clock() - start) / CLOCKS_PER_SEC;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    std::printf("%llu %.6f %ld\n", static_cast<unsigned long long>(packets), took, usage.ru_maxrss);
    Simulator::Destroy();
    return 0;
}
