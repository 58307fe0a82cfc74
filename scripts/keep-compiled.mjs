// Preloaded (`node --import`) into a snug whose compiled code is kept in the folder SNUG_COMPILED.
import { existsSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import vm from 'node:vm';

const scripts = new Map();

vm.Script = class extends vm.Script {
  constructor(source, options) {
    super(source, options);
    scripts.set(options.filename, this);
  }
};

process.on('exit', () => {
  for (const [path, script] of scripts) {
    const kept = join(process.env.SNUG_COMPILED, basename(path));
    // What was used by now is compiled and in it; the rest is compiled when it is used.
    if (!existsSync(kept)) writeFileSync(kept, script.createCachedData());
  }
});
