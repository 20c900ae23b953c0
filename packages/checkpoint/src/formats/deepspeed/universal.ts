/** DeepSpeed's Universal checkpoints: `zero/<parameter>/fp32.pt`, and a file for each state of its optimizer. */
import type { SourceTensor } from "../../format/source";
import { elementCount } from "../../layout/box";
import { join } from "../../stores/path";
import { corrupt, missing } from "../bytes/errors";
import { scalarTensor, wholeTensor } from "../bytes/foreign-tensor";
import type { ImportSource } from "../bytes/reader";
import { insideOf } from "../bytes/safe-path";
import { readTorch } from "../torch/read";
import { type ModelStates, treeAt } from "./model-states";
import { optionsOf } from "./zero";

/** Every parameter and its states. @throws OptError MISSING, CORRUPT */
export async function readUniversal({ list: entriesOf, file: open }: ImportSource, folder: string, model: ModelStates) {
  const list = async (path: string, wanted: "file" | "folder"): Promise<string[]> =>
    (await entriesOf(path)).filter(({ kind }) => kind === wanted).map(({ name }) => name);
  const shapes = new Map(model.groups.flatMap((group) => [...group]));
  const tensors: SourceTensor[] = [];
  const parameters = await list(folder, "folder");
  const absent = [...shapes.keys()].find((name) => !parameters.includes(name));
  if (absent !== undefined) throw missing(folder, `the folder of ${JSON.stringify(absent)} is not there`);
  const files = new Map<string, readonly string[]>();
  for (const parameter of parameters) {
    const names = await list(insideOf(folder, parameter, folder), "file");
    files.set(parameter, names.filter((name) => name.endsWith(".pt")).sort());
  }
  const wanted = new Set(["fp32.pt", ...[...files.values()].flat()]);
  for (const [parameter, names] of files) {
    const inside = join(folder, parameter);
    const gone = [...wanted].find((name) => !names.includes(name));
    if (gone !== undefined) throw missing(inside, `${gone} is not there`);
    for (const file of names) {
      const state = file.slice(0, -".pt".length);
      const name = state === "fp32" ? parameter : `${parameter}.${state}`;
      const follows = state === "fp32" ? {} : ({ role: "state", follows: parameter } as const);
      const read = await readTorch(await open(join(inside, file)));
      const tensor = read.tensors.get("param") ?? read.tensors.get("");
      const number = read.values[""];
      if (tensor === undefined && typeof number === "number")
        tensors.push({ ...scalarTensor(name, number, file), ...follows });
      if (tensor === undefined) continue;
      // Of stage 3 the elements are there in a row, of which only the model's file knows the shape.
      const told = shapes.get(parameter);
      const isFlat = told !== undefined && state !== "step" && elementCount(told) === elementCount(tensor.shape);
      tensors.push({
        ...wholeTensor(name, isFlat ? { ...tensor, shape: told } : tensor, join(parameter, file)),
        ...follows,
      });
    }
  }
  if (parameters.length === 0) throw corrupt(folder, "it holds no parameters");
  const common = (await list(folder, "file")).find((name) => name === "optimizer_state.pt");
  const groups = common && treeAt((await readTorch(await open(join(folder, common)))).tree, "param_groups");
  return {
    tensors,
    values: optionsOf(
      groups,
      model.groups.map((group) => [...group.keys()]),
    ),
  };
}
