/** A page that trains, saves and resumes as the test tells it to. */
import {
  blobFileSystem,
  checkpointBlob,
  inspectCheckpoint,
  loadCheckpoint,
  opfsFileSystem,
  saveCheckpoint,
  verifyCheckpoint,
} from "@opt/checkpoint";
import { Training } from "./training";

const RUN = "runs/page";
const input = Object.assign(document.createElement("input"), { type: "file", id: "file" });
document.body.append(input);
let training = new Training(1);

/** A step that takes long to write. */
const large = (step: number) => {
  const data = new Float32Array(8 << 20).fill(step);
  return { step, tensors: { large: { dtype: "f32", shape: [data.length], data } } };
};

const actions = {
  train(steps: number): string {
    training.train(steps);
    return training.bits;
  },
  async save(): Promise<readonly string[]> {
    return (await saveCheckpoint(RUN, training.contents, { keep: 2 })).warnings;
  },
  async resume(step?: number): Promise<string> {
    training = new Training(2);
    training.resume(await loadCheckpoint(RUN, step === undefined ? {} : { step }));
    return training.bits;
  },
  async resumeFromFile(): Promise<string> {
    const [file] = input.files!;
    training = new Training(2);
    training.resume(await loadCheckpoint(file!));
    return training.bits;
  },
  async download(): Promise<void> {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await checkpointBlob(training.contents));
    link.download = "run.safetensors";
    link.click();
  },
  async steps(): Promise<readonly number[]> {
    return (await inspectCheckpoint(RUN)).steps!;
  },
  verify: async (step?: number) => (await verifyCheckpoint(RUN, step === undefined ? {} : { step })).ok,
  names: async (folder: string) => (await opfsFileSystem().list(folder)).map(({ name }) => name).sort(),
  /** Begins a save that the test does not let end. */
  begin(step: number): void {
    void saveCheckpoint(RUN, large(step));
  },
  /** What a save says that may not be made. */
  async rejected(step: number): Promise<string> {
    const options = { fileSystem: blobFileSystem({}) };
    return saveCheckpoint(RUN, large(step), options).then(String, (error) => error.code);
  },
  async race(step: number): Promise<string[]> {
    const contents = { step, tensors: { w: { dtype: "f32", shape: [1], data: Float32Array.of(step) } } };
    const outcomes = await Promise.allSettled([1, 2, 3].map(() => saveCheckpoint(RUN, contents)));
    return outcomes.map((outcome) => (outcome.status === "fulfilled" ? "saved" : outcome.reason.code)).sort();
  },
};

export type Actions = typeof actions;
Object.assign(globalThis, { actions });
