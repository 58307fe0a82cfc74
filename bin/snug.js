#!/usr/bin/env node
import '../dist/snug.js';
