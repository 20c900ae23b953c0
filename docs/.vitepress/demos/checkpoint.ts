/** Reads a checkpoint for the page: its tensors' numbers, the slices of ranks, the same in another format. */
import {
  blobFileSystem,
  checkpointBlob,
  convertCheckpoint,
  defaultLayout,
  inspectCheckpoint,
  loadCheckpoint,
  opfsFileSystem,
} from "@opt/checkpoint";
import { boxesOfRank } from "@opt/checkpoint/plan";
import { expose } from "@opt/train/worker";
import base from "@opt-e2e/fine-tune/base.safetensors";
import type { CheckpointAsk, FileFormat, Opened, RankPart } from "./checkpoint-messages";
import { lookAt } from "./look";

/** Of the page's own files: what is converted does not have to fit in memory. */
const FOLDER = "checkpoint-playground";

let file: File;
let opened: Opened;

expose((_, ask: CheckpointAsk) => {
  switch (ask.kind) {
    case "open":
      return open(ask.file);
    case "look":
      return look(ask.name);
    case "cut":
      return cut(ask.name, ask.ranks);
    case "save":
      return save(ask.as);
    case "saveRank":
      return saveRank(ask.rank, ask.ranks);
  }
});

async function open(given: File | undefined): Promise<Opened> {
  file = given ?? new File([base as Uint8Array<ArrayBuffer>], "gpt2-sonnets.safetensors");
  opened = { ...(await inspectCheckpoint(file)), name: file.name };
  return opened;
}

async function look(name: string) {
  const { tensors } = await loadCheckpoint(file, { names: [name], dtype: { [name]: "f64" }, as: "plain" });
  const { buffer, byteOffset, byteLength } = tensors[name]!.data;
  return lookAt(new Float64Array(buffer, byteOffset, byteLength / 8));
}

function cut(name: string, ranks: number): RankPart[] {
  const layout = defaultLayout(ranks);
  return Array.from({ length: ranks }, (_, rank) => {
    const boxOf = (tensor: (typeof opened.tensors)[number]) => boxesOfRank(layout, tensor, rank)[0]!;
    const count = (sizes: readonly number[]) => sizes.reduce((product, size) => product * size, 1);
    const bytes = opened.tensors.reduce((sum, tensor) => {
      const whole = count(tensor.shape);
      return whole === 0 ? sum : sum + (tensor.bytes * count(boxOf(tensor).size)) / whole;
    }, 0);
    return { box: boxOf(opened.tensors.find((tensor) => tensor.name === name)!), bytes };
  });
}

async function save(as: FileFormat): Promise<File> {
  const name = `${file.name.replace(/\.\w+$/, "")}.${as}`;
  await convertCheckpoint(file.name, `${FOLDER}/${name}`, {
    ...{ to: as, overwrite: true },
    ...{ fileSystem: blobFileSystem([file]), outFileSystem: opfsFileSystem() },
  });
  const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle(FOLDER);
  return (await folder.getFileHandle(name)).getFile();
}

async function saveRank(rank: number, ranks: number): Promise<File> {
  const { tensors, values } = await loadCheckpoint(file, { rank, world: ranks, as: "plain" });
  const blob = await checkpointBlob({ step: opened.step ?? 0, tensors, values });
  return new File([blob], `rank-${rank}-of-${ranks}.safetensors`);
}
