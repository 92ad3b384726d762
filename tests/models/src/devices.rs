//! Generated kernel traces of block requests and network packets, interrupted by context switches
//! and losses of events.

use std::path::PathBuf;

use tracebraid_ctf::trace::TraceSet;

use crate::naming::{Field, Maker, TEXT, Value::Int, Value::Text};
use crate::synthetic::{Random, Scripted, Shape, scripted};

/// Writes a trace and opens it.
pub fn trace(seed: u64, shape: Shape) -> (PathBuf, TraceSet) {
    let mut machine = DeviceScript {
        random: Random::new(seed),
        shape,
        events: Vec::new(),
        time: 1000,
        running: vec![0; shape.cpus as usize],
        queued: Vec::new(),
        issued: Vec::new(),
        packets: Vec::new(),
    };
    for _ in 0..shape.steps {
        machine.step();
    }
    scripted(shape, machine.events)
}

/// A request: device, first sector, sectors.
type Request = (i64, i64, i64);

struct DeviceScript {
    random: Random,
    shape: Shape,
    events: Vec<Scripted<'static>>,
    time: u64,
    running: Vec<i32>,
    queued: Vec<Request>,
    issued: Vec<Request>,
    /// Buffer addresses, by interface.
    packets: Vec<(i64, &'static str)>,
}

const INTERFACES: [&str; 3] = ["lo", "eth0", "wlan0"];

impl DeviceScript {
    fn below(&mut self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }

    fn step(&mut self) {
        let tie = self.shape.ties && self.random.chance(150);
        self.time += if tie { 0 } else { 1 + self.random.below(50) };
        let cpu = self.random.below(self.shape.cpus);
        match self.random.below(100) {
            0..8 => self.switch(cpu),
            8..10 => self.state(cpu),
            10..14 => self.softirq(cpu),
            14..24 => self.queue(cpu),
            24..40 => self.issue(cpu),
            40..58 => self.complete(cpu),
            58..62 => self.bio(cpu),
            62..80 => self.send(cpu),
            80..92 => self.sent(cpu),
            92..97 => self.receive(cpu),
            _ => self.free(cpu),
        }
    }

    fn write(&mut self, cpu: u64, name: &'static str, fields: Vec<Field<'static>>) {
        let tid = self.running[cpu as usize];
        self.events
            .push((cpu, self.time, Maker { tid, pid: tid }, name, fields));
    }

    fn switch(&mut self, cpu: u64) {
        let prev = self.running[cpu as usize];
        let next = match self.below(8) as i32 {
            0 => 0,
            thread => 100 + thread,
        };
        if self.running.contains(&next) && next != 0 {
            return;
        }
        let fields = vec![
            ("prev_comm", TEXT, Text("before")),
            ("prev_tid", 32, Int(prev.into())),
            ("next_comm", TEXT, Text("after")),
            ("next_tid", 32, Int(next.into())),
        ];
        self.write(cpu, "sched_switch", fields);
        self.running[cpu as usize] = next;
    }

    fn state(&mut self, cpu: u64) {
        let (device, name) =
            [(8 << 20, "sda"), (8 << 20, "sdb"), (259 << 20, "nvme0n1")][self.below(3)];
        let fields = vec![("dev", 32, Int(device)), ("diskname", TEXT, Text(name))];
        self.write(cpu, "lttng_statedump_block_device", fields);
    }

    fn softirq(&mut self, cpu: u64) {
        let name = ["irq_softirq_entry", "irq_softirq_exit"][self.below(2)];
        self.write(cpu, name, vec![("vec", 32, Int(3))]);
    }

    fn request(request: Request) -> Vec<Field<'static>> {
        let (device, sector, sectors) = request;
        vec![
            ("dev", 32, Int(device)),
            ("sector", 64, Int(sector)),
            ("nr_sector", 32, Int(sectors)),
        ]
    }

    /// Adds the operation and, sometimes, the thread.
    fn with_more(&mut self, request: Request) -> Vec<Field<'static>> {
        let mut fields = DeviceScript::request(request);
        let kinds: &[i64] = if request.2 == 0 {
            &[1280, 4, 256]
        } else {
            &[1, 4, 2, 33, 12, 0, 97]
        };
        fields.push(("rwbs", 32, Int(kinds[self.below(kinds.len())])));
        if self.random.chance(500) {
            let tid = 100 + self.below(12) as i64;
            fields.push(("tid", 32, Int(tid)));
        }
        fields
    }

    fn queue(&mut self, cpu: u64) {
        let device = [8 << 20, 259 << 20][self.below(2)];
        // Few sectors, so that requests are adjacent and overlap.
        let sectors = [0, 8, 8, 16, 24][self.below(5)];
        let sector = if sectors == 0 {
            0
        } else {
            8 * self.below(40) as i64
        };
        let request = (device, sector, sectors);
        let fields = self.with_more(request);
        let name = ["block_getrq", "block_rq_insert"][self.below(2)];
        self.write(cpu, name, fields);
        self.queued.push(request);
    }

    fn issue(&mut self, cpu: u64) {
        if self.queued.is_empty() {
            return;
        }
        let at = self.below(self.queued.len());
        let request = self.queued.swap_remove(at);
        let fields = self.with_more(request);
        self.write(cpu, "block_rq_issue", fields);
        self.issued.push(request);
    }

    fn complete(&mut self, cpu: u64) {
        if self.issued.is_empty() {
            return;
        }
        let at = self.below(self.issued.len());
        let (device, sector, sectors) = self.issued.swap_remove(at);
        if self.random.chance(50) {
            let fields = DeviceScript::request((device, sector, sectors));
            self.write(cpu, "block_rq_requeue", fields);
            return self.queued.push((device, sector, sectors));
        }
        let part = if sectors > 8 && self.random.chance(300) {
            8
        } else {
            sectors
        };
        let shown = if sectors == 0 && self.random.chance(800) {
            -1
        } else {
            sector
        };
        let mut fields = DeviceScript::request((device, shown, part));
        let error = if self.random.chance(50) { -5 } else { 0 };
        fields.push(("error", 32, Int(error)));
        if sectors == 0 {
            let kind = [1280, 1280, 4, 33][self.below(4)];
            fields.push(("rwbs", 32, Int(kind)));
        }
        self.write(cpu, "block_rq_complete", fields);
        if part < sectors {
            self.issued.push((device, sector + part, sectors - part));
        }
    }

    fn bio(&mut self, cpu: u64) {
        let mut fields = DeviceScript::request((8 << 20, 8 * self.below(40) as i64, 8));
        let names = [
            "block_bio_backmerge",
            "block_bio_frontmerge",
            "block_rq_merge",
            "block_bio_remap",
        ];
        let name = names[self.below(4)];
        if name == "block_bio_remap" {
            fields.push(("old_dev", 32, Int((8 << 20) + self.below(3) as i64)));
            fields.push(("old_sector", 64, Int(3)));
        }
        self.write(cpu, name, fields);
    }

    fn packet(&mut self, (buffer, interface): (i64, &'static str)) -> Vec<Field<'static>> {
        let length = 60 + self.below(1400) as i64;
        vec![
            ("skbaddr", 64, Int(buffer)),
            ("len", 32, Int(length)),
            ("name", TEXT, Text(interface)),
        ]
    }

    fn send(&mut self, cpu: u64) {
        // Few buffers, so that addresses are reused.
        let packet = (0x1000 + self.below(60) as i64, INTERFACES[self.below(3)]);
        let fields = self.packet(packet);
        self.write(cpu, "net_dev_queue", fields);
        self.packets.push(packet);
    }

    fn sent(&mut self, cpu: u64) {
        if self.packets.is_empty() {
            return;
        }
        let at = self.below(self.packets.len());
        let packet = self.packets.swap_remove(at);
        let mut fields = self.packet(packet);
        let result = [0, 0, 0, 1, 16][self.below(5)];
        fields.insert(1, ("rc", 32, Int(result)));
        self.write(cpu, "net_dev_xmit", fields);
    }

    fn receive(&mut self, cpu: u64) {
        let packet = (0x9000 + self.below(60) as i64, INTERFACES[self.below(3)]);
        let fields = self.packet(packet);
        self.write(cpu, "net_if_receive_skb", fields);
    }

    fn free(&mut self, cpu: u64) {
        if self.random.chance(300) {
            let fields = vec![
                ("skaddr", 64, Int(0x77)),
                ("sport", 16, Int(4000 + self.below(4) as i64)),
                ("dport", 16, Int(80)),
            ];
            let name = ["tcp_retransmit_skb", "tcp_send_reset", "tcp_receive_reset"][self.below(3)];
            return self.write(cpu, name, fields);
        }
        let buffer = [0x1000, 0x9000][self.below(2)] + self.below(60) as i64;
        let fields = vec![
            ("skbaddr", 64, Int(buffer)),
            ("location", 64, Int(1)),
            ("protocol", 16, Int(2048)),
            ("reason", 32, Int(1 + self.below(4) as i64)),
        ];
        let name = ["skb_kfree", "skb_consume"][self.below(2)];
        self.write(cpu, name, fields);
    }
}
