import { contractSuite } from "@opt/testkit";
import { openWasmBackend } from "./backend";

const dtypes = ["f32", "f64"] as const;
contractSuite({ name: "wasm", dtypes, open: () => openWasmBackend({ threads: 2 }) });
