/** What has no reader here, and what to do with it. */
import type { Candidate } from "../format/source";
import { latin1 } from "./bytes/latin1";

type Row = readonly [what: string, cure: string, recognises: (candidate: Candidate, text: string) => boolean];

const holds = ({ entries }: Candidate, name: string) => entries.some((entry) => entry.name === name);

const UNREAD: readonly Row[] = [
  [
    "a pointer of Git LFS, in the place of the file",
    "Get the file itself: git lfs pull.",
    (_, text) => text.startsWith("version https://git-lfs"),
  ],
  [
    "a page of HTML, perhaps an answer of a server in the place of a file",
    "Download the file again, with a token if it needs one.",
    (_, text) => /^\s*<(!doctype|html)/i.test(text),
  ],
  [
    "a SavedModel of TensorFlow",
    "Save it as .keras or .weights.h5 with Keras.",
    (candidate) => holds(candidate, "saved_model.pb"),
  ],
  [
    "a checkpoint of TensorFlow",
    "Load it in TensorFlow, and save it as .weights.h5 with Keras.",
    ({ name, entries }) => [name, ...entries.map((entry) => entry.name)].some((each) => /\.ckpt.*\.index$/.test(each)),
  ],
  ["a model in ONNX", "Save the weights of the model that it was made from.", ({ name }) => name.endsWith(".onnx")],
  ["compressed by gzip", "Unpack it.", (_, text) => text.startsWith("\x1f\x8b")],
  ["compressed by zstd", "Unpack it.", (_, text) => text.startsWith("\x28\xb5\x2f\xfd")],
  ["a tar archive", "Unpack it, and give the file inside.", ({ name }) => /\.(tar|nemo)$/.test(name)],
  [
    "a pickle that torch.save did not write",
    "Load it in Python, and save its arrays by torch.save or numpy.savez.",
    ({ kind, head }) => kind === "file" && head[0] === 0x80 && head[1]! >= 2 && head[1]! <= 5,
  ],
  [
    "a zip archive without a checkpoint that is known here",
    "Unpack it, and give the file inside.",
    ({ members }) => members !== undefined,
  ],
];

/** What stands there, if it is known, and what to do. */
export function unreadKind(candidate: Candidate): { what: string; cure: string } | undefined {
  const text = latin1(candidate.head);
  const row = UNREAD.find(([, , recognises]) => recognises(candidate, text));
  return row && { what: row[0], cure: row[1] };
}
