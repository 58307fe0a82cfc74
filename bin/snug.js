#!/usr/bin/env node
const { readFileSync } = require('node:fs');
const module_ = require('node:module');
const { basename, dirname, join } = require('node:path');
const { Script } = require('node:vm');

const DIST = join(__dirname, '..', 'dist');
/** What V8 made of the files of dist/ after the build (scripts/compile.mjs). It turns down by itself what it did not make. */
const COMPILED = join(DIST, `compiled-${process.version}-${process.arch}`);

function compiledCode(path) {
  try {
    return readFileSync(join(COMPILED, basename(path)));
  } catch {
    return undefined;
  }
}

/** `require` within dist/, from compiled code where there is some: compiling takes half of a start. */
function createLoader() {
  const modules = new Map();
  const load = (path) => {
    const known = modules.get(path);
    if (known) return known.exports;
    const loaded = { exports: {} };
    modules.set(path, loaded);
    const source = readFileSync(path, 'utf8');
    const script = new Script(`(function (exports, require, module, __filename, __dirname) {${source}\n})`, {
      filename: path,
      cachedData: compiledCode(path),
    });
    const folder = dirname(path);
    const requireHere = (id) => (id.startsWith('./') ? load(join(folder, id)) : require(id));
    script.runInThisContext()(loaded.exports, requireHere, loaded, path, folder);
    return loaded.exports;
  };
  return load;
}

// From 22.1 on Node keeps compiled code between starts itself.
module_.enableCompileCache?.();
const load = module_.enableCompileCache ? require : createLoader();
load(join(DIST, 'snug.js'));
