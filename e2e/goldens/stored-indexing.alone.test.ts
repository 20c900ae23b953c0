// PyTorch's numbers of what is read and written by brackets, on the devices that answer at once as js does, eager and compiled.
import "@opt/kernels-cpu";
import "@opt/kernels-cuda";
import "@opt/kernels-wasm";
import { storedSuite } from "@opt/testkit";
import { storedIndexingCalls } from "../../packages/core/testing/indexing-calls";

const file = new URL("../../packages/core/testing/goldens/indexing.json", import.meta.url);
await storedSuite(file, storedIndexingCalls(), ["wasm", "cpu", "cuda"]);
