/** Several files of PyTorch that are one checkpoint: folders of Hugging Face's Trainer, and archives of Stable-Baselines3. */
import { type FormatReader, isObject, type Json, readWhole, type SourceTensor } from "../../format/source";
import { isCount } from "../../layout/counts";
import { basename, join } from "../../stores/path";
import { missing } from "../bytes/errors";
import { wholeTensors } from "../bytes/foreign-tensor";
import { parseJson } from "../bytes/json";
import { formatReader, type ImportSource } from "../bytes/reader";
import { type ByteSource, readBytes } from "../bytes/source";
import { type PythonTree, plainOf, renameTensors } from "../python/tree";
import { safetensorsIndexReader, safetensorsReader } from "../safetensors/read";
import { openZip } from "../zip/read";
import { binIndexReader, readTorch, stepOf, torchFileReader } from "./read";

const LARGEST_JSON = 64 * 1024 * 1024;
const MODEL_BIN = "pytorch_model.bin";

/** A folder with a model alone. */
export const binReader: FormatReader = {
  format: torchFileReader.format,
  open: (path, ...more) => torchFileReader.open(join(path, MODEL_BIN), ...more),
};

/** What was found so far, each file under a word of its own. */
class Joined {
  readonly tensors: SourceTensor[] = [];
  readonly values: Record<string, Json> = {};
  readonly unreadable = new Map<string, string>();
  readonly dict: [PythonTree, PythonTree][] = [];

  /** @returns what the file holds beside tensors, nested */
  async add(word: string, source: ByteSource, file: string): Promise<Json> {
    const { tensors, values, unreadable, tree } = await readTorch(source, word);
    this.tensors.push(...wholeTensors(tensors, file));
    Object.assign(this.values, values);
    for (const [name, reason] of unreadable) this.unreadable.set(name, reason);
    this.dict.push([word, tree]);
    return plainOf(renameTensors(tree, () => undefined) ?? null) ?? null;
  }

  get structure(): Json {
    return { dict: this.dict } as Json;
  }
}

/** By the file that a folder has: the readers of models, of which the first that fits is taken. */
const MODELS = [
  ["model.safetensors", safetensorsReader, true],
  ["adapter_model.safetensors", safetensorsReader, true],
  ["model.safetensors.index.json", safetensorsIndexReader, false],
  [MODEL_BIN, torchFileReader, true],
  ["adapter_model.bin", torchFileReader, true],
  ["pytorch_model.bin.index.json", binIndexReader, false],
] as const;

/** Files that are the same to PyTorch as what a training loop keeps in one. */
const STATES = ["optimizer", "scheduler", "scaler"];

export const trainerReader = formatReader("Hugging Face Trainer", async ({ path, fileSystem, options, file }) => {
  const names = (await fileSystem.list(path)).map(({ name }) => name);
  const found = MODELS.find(([name]) => names.includes(name));
  if (found === undefined) throw missing(path, `no model is there, such as ${MODELS[0][0]}`);
  const [name, reader, isFile] = found;
  const model = await reader.open(isFile ? join(path, name) : path, fileSystem, options);
  try {
    const joined = new Joined();
    const dict = [...model.tensors.keys()].map((key): [PythonTree, PythonTree] => [key, { tensor: key }]);
    joined.dict.push(["model", (model.structure as PythonTree | undefined) ?? { dict }]);
    for (const word of STATES)
      if (names.includes(`${word}.pt`)) await joined.add(word, await file(join(path, `${word}.pt`)), `${word}.pt`);
    const { values, unreadable } = joined;
    for (const state of names.filter((one) => /^rng_state(_\d+)?\.pth$/.test(one))) {
      // Python's generator has hundreds of numbers: they are one value.
      const generators = new Joined();
      const word = state.slice(0, -".pth".length);
      values[word] = await generators.add(word, await file(join(path, state)), state);
      joined.tensors.push(...generators.tensors);
    }
    for (const word of ["trainer_state", "config"])
      if (names.includes(`${word}.json`)) values[word] = await jsonOf(join(path, `${word}.json`), fileSystem);
    for (const [key, reason] of model.unreadable ?? []) unreadable.set(key, reason);
    const said = isObject(values.trainer_state) ? values.trainer_state.global_step : undefined;
    return {
      tensors: [...model.tensors.values(), ...joined.tensors],
      values: { ...model.values, ...values },
      step: isCount(said) ? said : model.step,
      unreadable,
      structure: joined.structure,
      close: () => model.close(),
    };
  } catch (error) {
    await model.close();
    throw error;
  }
});

async function jsonOf(path: string, fileSystem: ImportSource["fileSystem"]): Promise<Json> {
  return parseJson(await readWhole(fileSystem, path, LARGEST_JSON), path) as Json;
}

/** What a model of Stable-Baselines3 says of itself: objects of Python among it are pickled, and stay so. */
const DATA = "data";
const PICKLED = ":serialized:";

export const baselinesReader = formatReader("Stable-Baselines3", async ({ path, file }) => {
  const members = await openZip(await file());
  const joined = new Joined();
  for (const [name, member] of members)
    if (name.endsWith(".pth")) await joined.add(name.slice(0, -".pth".length), member, basename(path));
  const data = members.get(DATA);
  const isSmall = data !== undefined && data.byteLength <= LARGEST_JSON;
  const said = isSmall ? parseJson(await readBytes(data, 0, data.byteLength), data.path) : {};
  const plain = Object.entries(said).filter(([, value]) => !isObject(value) || value[PICKLED] === undefined);
  const values = { ...joined.values, ...(Object.fromEntries(plain) as Record<string, Json>) };
  const { tensors, unreadable, structure } = joined;
  const step = stepOf({ step: values.num_timesteps ?? null });
  return { tensors, values, unreadable, structure, step };
});
