// PyTorch's numbers of the ops that choose, put and order elements, on the devices that answer at once as js does, eager and compiled.
import "@opt/kernels-cpu";
import "@opt/kernels-cuda";
import "@opt/kernels-wasm";
import { storedSuite } from "@opt/testkit";
import { indexCalls } from "../../packages/core/testing/index-calls";

const file = new URL("../../packages/core/testing/goldens/indices.json", import.meta.url);
await storedSuite(file, indexCalls(5, 4), ["wasm", "cpu", "cuda"]);
