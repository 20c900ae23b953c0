/** The writing thread of an async save. */
import { parentPort, workerData } from "node:worker_threads";
import { nodeFileSystem } from "./file-system";
import { outcomeOf } from "./outcome";
import { type ShardJob, type WorkerReply, writeShard } from "./shard-job";

const { job, contents } = workerData as { job: ShardJob; contents: Uint8Array[] };
const reply = (message: WorkerReply) => parentPort!.postMessage(message);

const progress = (bytes: number) => reply({ kind: "progress", bytes });
const outcome = await outcomeOf(() => writeShard(job, (box) => contents[box]!, nodeFileSystem, progress));
reply({ kind: "end", outcome });
