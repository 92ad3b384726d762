use tracebraid_ctf::trace::TraceSet; use tracebraid_fold::*; use tracebraid_reports::cpu::*;
fn main(){ let a:Vec<String>=std::env::args().collect();
 let t0=std::time::Instant::now();
 let set=TraceSet::open(&[&a[1]]).unwrap(); eprintln!("open {:?}",t0.elapsed());
 let threads:usize=a.get(2).map_or(1,|x|x.parse().unwrap()); let chunk:u64=a.get(3).map_or(4<<20,|x|x.parse().unwrap());
 let an=CpuAnalysis::new(&set,CpuOptions::default()); eprintln!("new {:?}",t0.elapsed());
 let r=fold(&set,&an,Options{threads,chunk_bytes:chunk,until:None},&Control::default()).unwrap(); eprintln!("fold {:?}",t0.elapsed());
 println!("{}",serde_json::to_string_pretty(&r.report).unwrap()); eprintln!("{:?}",r.damage.len()); }
