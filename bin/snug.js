#!/usr/bin/env node
import module from 'node:module';

// Compiled code is kept between starts where Node can do that (from 22.1 on).
module.enableCompileCache?.();
await import('../dist/snug.js');
