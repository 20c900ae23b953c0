import { adamRules } from "@opt/adam-amsgrad/rules";
import { nadamRules } from "@opt/nadam/rules";
import { contractSuite } from "@opt/testkit";
import { openWasmBackend } from "./backend";

const rules = [...nadamRules, ...adamRules];
contractSuite({ name: "wasm", dtypes: ["f32", "f64"], open: () => openWasmBackend({ threads: 2 }), rules });
