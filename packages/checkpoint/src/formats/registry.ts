/** The formats of other systems, and by what each is known: contents before names. Readers are loaded when one of them is needed. */
import {
  type Candidate,
  type FormatReader,
  type ImportOptions,
  openRandomAccess,
  type TensorSource,
} from "../format/source";
import { runsIn } from "../format/steps";
import { naturally } from "../layout/natural-order";
import { diskError, type FileSystem } from "../stores/file-system";
import { basename, join } from "../stores/path";
import { missing, unsupported } from "./bytes/errors";
import { latin1 } from "./bytes/latin1";
import { isDeepspeed } from "./deepspeed/signature";
import { isHdf5 } from "./keras/signature";
import { isOrbax } from "./orbax/signature";
import { beginsWithHeader } from "./safetensors/signature";

type Row = [format: string, recognises: (candidate: Candidate) => boolean, load: () => Promise<FormatReader>];

const HEAD = 64;

/** A step's folder, as many systems call them. */
const NUMBERED = /^(?:.*[_-])?\d+$/;

/** Looks at what stands at a path. @throws OptError MISSING, IO */
export async function lookAt(path: string, fileSystem: FileSystem): Promise<Candidate> {
  const name = basename(path);
  const failed = (doing: string) => (error: unknown) => {
    throw diskError(error, path, doing);
  };
  const kind = await fileSystem.kind(path).catch(failed("looking"));
  if (kind === "folder") {
    const entries = await fileSystem.list(path).catch(failed("listing"));
    const numbered = entries.filter((entry) => entry.kind === "folder" && NUMBERED.test(entry.name)).at(-1);
    const inside = numbered && (await fileSystem.list(join(path, numbered.name)).catch(failed("listing")));
    return { path, name, kind, head: new Uint8Array(0), byteLength: 0, entries, inside };
  }
  if (kind !== "file") throw missing(path, "no file or folder is there", "Check the path.");
  const file = await openRandomAccess(fileSystem, path);
  try {
    const head = new Uint8Array(Math.min(HEAD, file.byteLength));
    await file.read(head, 0);
    const members = isZip(head) ? await (await import("./zip/read")).memberNames(file) : undefined;
    return { path, name, kind, head, byteLength: file.byteLength, entries: [], members };
  } finally {
    await file.close();
  }
}

/** The reader of what stands there, or undefined. */
export function readerOf(candidate: Candidate): Row[2] | undefined {
  return FORMATS.find(([, recognises]) => recognises(candidate))?.[2];
}

/** Opens a checkpoint of any foreign format. @throws OptError UNSUPPORTED if none is recognised, and what its reader throws */
export async function openForeign(
  path: string,
  fileSystem: FileSystem,
  options: ImportOptions = {},
): Promise<TensorSource> {
  const candidate = await lookAt(path, fileSystem);
  const load = readerOf(candidate);
  if (load === undefined) {
    const runs = candidate.kind === "folder" ? await runsIn(fileSystem, path) : [];
    const known = [...new Set(FORMATS.map(([format]) => format))].join(", ");
    if (runs.length > 0) throw unsupported(path, "it is a folder of runs", `Give one of them: ${runs.join(", ")}.`);
    const steps = candidate.entries.filter(({ name, kind }) => kind === "folder" && NUMBERED.test(name));
    const [latest] = steps.map(({ name }) => join(path, name)).sort((a, b) => naturally(b, a));
    if (latest !== undefined && readerOf(await lookAt(latest, fileSystem)))
      throw unsupported(path, "it is a folder of steps", `Give one of them. The latest is ${latest}.`);
    const { unreadKind } = await import("./unread");
    const unread = unreadKind(candidate);
    if (unread) throw unsupported(path, `it is ${unread.what}`, unread.cure);
    const advice = `Give the folder of a run or of a step, or a checkpoint of another system. Known: ${known}.`;
    throw unsupported(path, "no known checkpoint format is recognised", advice);
  }
  return (await load()).open(path, fileSystem, options);
}

const has = ({ entries }: Candidate, test: (name: string) => boolean, wanted: "file" | "folder" = "file") =>
  entries.some(({ name, kind }) => kind === wanted && test(name));

const endsWith = (candidate: Candidate, end: string) =>
  candidate.kind === "file" ? candidate.name.endsWith(end) : candidate.entries.some(({ name }) => name.endsWith(end));

/** Every foreign format, the surest signatures first. */
const FORMATS: readonly Row[] = [
  [
    "TorchScript",
    ({ members }) => members?.some((name) => /^[^/]+\/constants\.pkl$/.test(name)) === true,
    async () => (await import("./torch/read-script")).torchScriptReader,
  ],
  [
    "Stable-Baselines3",
    ({ members }) => members?.includes("policy.pth") === true,
    async () => (await import("./torch/read-joined")).baselinesReader,
  ],
  [
    "Hugging Face Trainer",
    (candidate) => has(candidate, (name) => name === "trainer_state.json"),
    async () => (await import("./torch/read-joined")).trainerReader,
  ],
  [
    "PyTorch",
    (candidate) => isTorchZip(candidate) || LEGACY_HEAD.every((byte, i) => candidate.head[i] === byte),
    async () => (await import("./torch/read")).torchFileReader,
  ],
  [
    "Keras",
    ({ name, head, members }) =>
      isHdf5(head) || (isZip(head) && (members?.includes("model.weights.h5") || name.endsWith(".keras"))),
    async () => (await import("./keras/read")).kerasReader,
  ],
  ["GGUF", ({ head }) => latin1(head).startsWith("GGUF"), async () => (await import("./gguf/read")).ggufReader],
  [
    "NumPy",
    ({ head, members }) =>
      latin1(head).startsWith("\x93NUMPY") || members?.some((name) => name.endsWith(".npy")) === true,
    async () => (await import("./numpy/read")).numpyReader,
  ],
  [
    "Megatron torch_dist",
    (candidate) => {
      const isStep = has(candidate, (name) => name === ".metadata") && has(candidate, (name) => name === "common.pt");
      return isStep || has(candidate, (name) => name === "latest_checkpointed_iteration.txt");
    },
    async () => (await import("./torch/read-megatron")).megatronReader,
  ],
  [
    "PyTorch DCP",
    (candidate) => has(candidate, (name) => name === ".metadata"),
    async () => (await import("./torch/read-dcp")).dcpReader,
  ],
  ["DeepSpeed", isDeepspeed, async () => (await import("./deepspeed/read")).deepspeedReader],
  [
    "Orbax",
    ({ entries, inside = [] }) => isOrbax(entries) || isOrbax(inside),
    async () => (await import("./orbax/read")).orbaxReader,
  ],
  [
    "MindSpore ranks",
    (candidate) => has(candidate, (name) => /^rank_\d+$/.test(name), "folder"),
    async () => (await import("./mindspore/read-ranks")).mindsporeRanksReader,
  ],
  [
    "sharded safetensors",
    (candidate) => endsWith(candidate, ".safetensors.index.json"),
    async () => (await import("./safetensors/read")).safetensorsIndexReader,
  ],
  [
    "PyTorch",
    // Beside the same weights as safetensors, those are read: they hold no pickle.
    (candidate) => has(candidate, (name) => name === MODEL_BIN) && !has(candidate, (name) => name === MODEL),
    async () => (await import("./torch/read-joined")).binReader,
  ],
  [
    "sharded PyTorch",
    (candidate) => endsWith(candidate, ".bin.index.json"),
    async () => (await import("./torch/read")).binIndexReader,
  ],
  [
    "safetensors shards",
    (candidate) => has(candidate, (name) => name.endsWith(".safetensors")),
    async () => (await import("./safetensors/read-shards")).safetensorsShardsReader,
  ],
  [
    "TF.js",
    ({ kind, name, head, entries }) =>
      kind === "folder"
        ? entries.some((entry) => entry.name === "model.json")
        : name.endsWith(".json") && /^\s*\{/.test(new TextDecoder().decode(head)) && !name.endsWith(".index.json"),
    async () => (await import("./tfjs/read")).tfjsReader,
  ],
  [
    "Paddle",
    ({ kind, name, head }) => kind === "file" && head[0] === 0x80 && /\.pd(params|opt|iparams)$/.test(name),
    async () => (await import("./paddle/read")).paddleReader,
  ],
  [
    "safetensors",
    ({ kind, head, name }) =>
      kind === "file" && (beginsWithHeader(head) || (name.endsWith(".safetensors") && !isText(head))),
    async () => (await import("./safetensors/read")).safetensorsReader,
  ],
  [
    "MindSpore ckpt",
    ({ kind, name }) => kind === "file" && name.endsWith(".ckpt"),
    async () => (await import("./mindspore/read")).mindsporeReader,
  ],
  [
    "flax msgpack",
    ({ kind, name }) => kind === "file" && name.endsWith(".msgpack"),
    async () => (await import("./flax/read")).flaxReader,
  ],
];

const [MODEL, MODEL_BIN] = ["model.safetensors", "pytorch_model.bin"];

/** The legacy file begins with a pickle (protocol 2, LONG1 of 10 bytes) of its magic number. */
const LEGACY_HEAD = [0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19];

/** A PyTorch zip is told from other zips by a member `<root>/data.pkl`; by the first one where the directory is damaged. */
function isTorchZip({ head, members }: Candidate): boolean {
  if (members !== undefined) return members.some((name) => /^[^/]+\/data\.pkl$/.test(name));
  return isZip(head) && latin1(head).slice(30).includes("/data.pkl");
}

function isZip(head: Uint8Array): boolean {
  return latin1(head).startsWith("PK\x03\x04");
}

/** What a server or Git LFS left in the place of a file. */
function isText(head: Uint8Array): boolean {
  return /^(version https:|\s*<)/.test(latin1(head));
}
