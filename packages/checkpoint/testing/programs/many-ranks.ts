/**
 * What one process does for a save of many ranks of FSDP with AdamW, and for a rank that loads it, without the tensors' bytes:
 * `many-ranks <folder> <ranks> <parameters> save|plan`.
 */
import { existsSync, readFileSync, statSync } from "node:fs";
import { byteLengthOf, shardHeader, shardName } from "../../src/format/shard";
import type { SelectedTensor } from "../../src/format/source";
import { Verification } from "../../src/format/verification";
import type { Layout } from "../../src/layout/layout";
import { localFileSystem } from "../../src/platform/local";
import { openCheckpoint } from "../../src/read/native";
import { PlannedSource, planReads, ReadRequest } from "../../src/read/read-plan";
import { boxesWanted, selectTensors } from "../../src/read/select";
import { assembleManifest, type RankReport, type RecordedTensor } from "../../src/save/shards/assemble";
import { planSave } from "../../src/save/shards/plan";
import { newAttempt } from "../../src/save/step/owner";
import { StepFolder } from "../../src/save/step/step-folder";

const [, , folder, count, parameters, what] = process.argv;
const ranks = Number(count);

/** As a large language model has them: matrices whose rows mostly do not divide evenly, and vectors. */
const SHAPES = [[8192, 8192], [28_672, 8192], [8192, 28_672], [1024, 8192], [8192], [50_257, 8192], [3000, 128]];

const layout: Layout = {
  mesh: { shape: [ranks], axes: ["data"] },
  tensors: {
    ...Object.fromEntries(
      names().map((name, i) => [name, SHAPES[i % SHAPES.length]!.map((_, d) => (d ? null : "data"))]),
    ),
    "*": "replicate",
  },
};

function names(): string[] {
  return Array.from({ length: Number(parameters) }, (_, i) => `model.layers.${i}.self_attn.projection.weight`);
}

function recorded(): RecordedTensor[] {
  return names().flatMap((name, i): RecordedTensor[] => {
    const shape = SHAPES[i % SHAPES.length]!;
    const state = (key: string, of: readonly number[]) =>
      ({ name: `optimizer.state.${name}.${key}`, dtype: "F32", shape: of, role: "state", follows: name }) as const;
    return [
      { name, dtype: "BF16", shape, role: "param" },
      state("exp_avg", shape),
      state("exp_avg_sq", shape),
      state("step", []),
    ];
  });
}

async function save(): Promise<Record<string, number>> {
  const tensors = recorded();
  const begun = performance.now();
  const plan = planSave(layout, tensors);
  const own = plan.boxesOf(ranks - 1);
  const planned = performance.now() - begun;
  const reports = Array.from({ length: ranks }, (_, rank): RankReport => {
    const boxes = rank === ranks - 1 ? own : plan.boxesOf(rank);
    // A header takes long to make, and its length says nothing here.
    const headerLength = rank === 0 ? shardHeader(boxes).bytes.length : 4096;
    const byteLength = boxes.reduce((sum, one) => sum + byteLengthOf(one), headerLength);
    const file = { name: shardName(rank), byteLength, headerLength, headerCrc32: rank, crc32: rank };
    return { file, checksums: Uint32Array.from(boxes, (_, i) => i * ranks + rank), replicas: [] };
  });
  const attempt = newAttempt();
  const step = await StepFolder.begin(localFileSystem, folder!, 1, attempt, { overwrite: false });
  const assembled = performance.now();
  await step.commit(assembleManifest(plan, reports, { step: 1, attempt, mesh: layout.mesh, values: {} }));
  const { size } = statSync(`${step.finalPath}/manifest.json`);
  return { planned, committed: performance.now() - assembled, bytes: size, boxes: plan.boxesOf(1).length };
}

async function plan(): Promise<Record<string, number>> {
  const begun = performance.now();
  const source = await openCheckpoint(folder!, localFileSystem);
  const opened = performance.now() - begun;
  const tensors = selectTensors(source, {}, new Verification());
  const requests = function* (): Generator<ReadRequest> {
    for (const tensor of tensors as readonly SelectedTensor[])
      for (const box of boxesWanted(tensor, { layout, rank: ranks >> 1 }, source.tensors.get(tensor.follows ?? "")))
        yield new ReadRequest(new PlannedSource(tensor), box, undefined);
  };
  let bytes = 0;
  const files = new Set();
  for (const read of planReads(requests(), 2 << 20)) {
    bytes += read.length;
    files.add(read.file);
  }
  return { opened, planned: performance.now() - begun, bytes, files: files.size };
}

const STATUS = "/proc/self/status";
const result = what === "save" ? await save() : await plan();
process.stdout.write(JSON.stringify({ ...result, memory: mostMemory() }));

/** Of this process alone: on Linux, `maxRSS` begins with what its parent had when it started it. */
function mostMemory(): number {
  const status = existsSync(STATUS) ? readFileSync(STATUS, "utf8") : "";
  const [, kilobytes] = /^VmHWM:\s+(\d+) kB/m.exec(status) ?? [];
  return 1024 * (kilobytes === undefined ? process.resourceUsage().maxRSS : Number(kilobytes));
}
