// PyTorch's numbers of every op on the devices that answer at once as js does, eager and compiled.
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { storedSuite } from "@opt/testkit";
import { OP_ROWS, opCalls } from "../../packages/core/testing/op-calls";

const file = new URL("../../packages/core/testing/goldens/ops.json", import.meta.url);
await storedSuite(file, opCalls(1, Object.keys(OP_ROWS).length), ["wasm", "cpu"]);
